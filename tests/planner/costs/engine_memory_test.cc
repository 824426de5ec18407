// The ledger of plans as the engine runs them. (tests/worker/engine/equivalence holds it to programs and to what ranks count.)
#include "planner/costs/engine_memory.h"

#include "common/program/host_slots.h"
#include "gtest/gtest.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

class EngineMemoryTest : public testing::TestWithParam<DType> {
 protected:
  EngineMemoryTest()
      : tied_(MakeSetting(Nodes({{"T4", "T4"}}), Work(true))), apart_(MakeSetting(Nodes({{"T4", "T4"}}), Work(false))) {}

  static Workload Work(bool tied) {
    Workload workload = WorkOf(MediumModel(12, tied), 64, GetParam());
    workload.state = StateKeeping::kEngine;
    return workload;
  }
  const Costs& costs() const { return apart_->costs; }
  int64_t Layer() const { return costs().UnitElements(UnitKind::kLayer); }
  int64_t Gradient(int64_t elements) const { return elements * costs().gradient_bytes(); }
  int64_t Parameter(int64_t elements) const { return elements * costs().element_bytes(); }
  // A middle stage of four layers in a group of four.
  RankDuty Middle(ScheduleFamily schedule, int zero_stage) const {
    RankDuty duty;
    duty.layers = duty.largest_ministage = 4;
    duty.schedule = schedule;
    duty.stage = 1;
    duty.num_stages = 3;
    duty.zero_stage = zero_stage;
    duty.share = 0.5;
    duty.group_size = 4;
    return duty;
  }
  std::unique_ptr<Setting> tied_, apart_;
};

TEST_P(EngineMemoryTest, MomentsLieByShares) {
  const MemoryByPurpose memory = MemoryOf(costs(), Middle(ScheduleFamily::k1F1B, 1), {2, 2});
  EXPECT_EQ(memory.optimizer, costs().optimizer_bytes_per_element() * 2 * Layer()) << "half of four layers";
  EXPECT_EQ(memory.parameters, Parameter(4 * Layer()));
  EXPECT_EQ(memory.gradients, Gradient(4 * Layer()));
}

// The steppers are in the first stage. The other end has a buffer of parameters and one of gradients, for the whole step.
TEST_P(EngineMemoryTest, ATiedEmbeddingsOtherEndHasBuffersAlone) {
  const Costs& costs = tied_->costs;
  const int64_t embedding = costs.UnitElements(UnitKind::kEmbedding), norm = costs.UnitElements(UnitKind::kHead);
  for (int zero = 1; zero <= 3; ++zero) {
    RankDuty last = Middle(ScheduleFamily::kGPipe, zero);
    last.stage = 2;
    const MemoryByPurpose without = MemoryOf(costs, last, {2, 2});
    last.head = true;
    const MemoryByPurpose with = MemoryOf(costs, last, {2, 2});
    const int64_t moments = costs.optimizer_bytes_per_element() * norm;
    EXPECT_LE(with.optimizer - without.optimizer, moments) << zero;
    EXPECT_GE(with.gathered - without.gathered, Parameter(embedding) + Gradient(embedding)) << zero;
    EXPECT_LE(with.gathered - without.gathered, Parameter(embedding + norm) + Gradient(embedding + norm)) << zero;
  }
  // In the first stage its home is one of the rank's own where nothing is gathered.
  RankDuty first = Middle(ScheduleFamily::kGPipe, 1);
  first.stage = 0;
  first.embedding = true;
  EXPECT_EQ(MemoryOf(costs, first, {2, 2}).gathered, 0);
  first.zero_stage = 2;
  EXPECT_EQ(MemoryOf(costs, first, {2, 2}).gathered, Gradient(embedding + 2 * Layer()));
  first.zero_stage = 3;
  EXPECT_EQ(MemoryOf(costs, first, {2, 2}).gathered, Gradient(embedding + 2 * Layer()) + Parameter(embedding + 2 * Layer()));
}

TEST_P(EngineMemoryTest, GradientsOfALayeredMinistageAddUpUntilTheLastMicrobatch) {
  RankDuty duty = Middle(ScheduleFamily::kLayered, 2);
  const auto gathered = [&](const std::vector<int64_t>& microbatches) { return MemoryOf(costs(), duty, microbatches).gathered; };
  EXPECT_EQ(gathered({1, 1}), Gradient(4 * Layer()));
  duty.ministages = 4;
  duty.largest_ministage = 1;
  EXPECT_EQ(gathered({1, 1}), Gradient(2 * Layer())) << "the next ministages take the same buffers, no fewer than two";
  duty.ministages = 2;
  duty.largest_ministage = 3;
  EXPECT_EQ(gathered({1, 1}), Gradient(3 * Layer()));
  EXPECT_EQ(gathered({2}), Gradient(3 * Layer())) << "another rank of the stage may have two microbatches";
  duty.rounds = 1;
  EXPECT_EQ(gathered({2}), Gradient(2 * Layer())) << "nothing to add up: two in turn";
}

// Nobody has the same slices: nothing is gathered or summed in turn, whatever the ZeRO stage.
TEST_P(EngineMemoryTest, AUnitAloneInItsStageKeepsWhatItComputes) {
  for (const ScheduleFamily schedule : {ScheduleFamily::kLayered, ScheduleFamily::k1F1B}) {
    RankDuty duty = Middle(schedule, 1);
    duty.group_size = 1;
    duty.tp_share = 0.5;
    const MemoryByPurpose memory = MemoryOf(costs(), duty, {2, 2});
    EXPECT_EQ(memory.parameters, Parameter(4 * costs().UnitElements(UnitKind::kLayer, 0.5)));
    for (const int zero : {2, 3}) {
      duty.zero_stage = zero;
      EXPECT_EQ(MemoryOf(costs(), duty, {2, 2}).total(), memory.total()) << zero;
    }
  }
}

// Head and layers share two buffers; a single unit that is reduced several times takes both.
TEST_P(EngineMemoryTest, UnitsTakeTwoBuffersInTurn) {
  RankDuty last = Middle(ScheduleFamily::kGPipe, 2);
  last.head = true;
  last.layers = last.largest_ministage = 2;
  const int64_t head = costs().UnitElements(UnitKind::kHead);
  const auto gathered = [&](const std::vector<int64_t>& microbatches) {
    last.rounds = static_cast<int64_t>(microbatches.size());
    return MemoryOf(costs(), last, microbatches).gathered;
  };
  ASSERT_GT(head, Layer());
  EXPECT_EQ(gathered({4}), Gradient(head + Layer()));
  EXPECT_EQ(gathered({2, 2}), Gradient(2 * head)) << "three units: with the next microbatch the head is in the other buffer";
  last.layers = last.largest_ministage = 3;
  EXPECT_EQ(gathered({2, 2}), Gradient(head + Layer())) << "four units: always in the same";
  RankDuty single = Middle(ScheduleFamily::kGPipe, 3);
  single.layers = single.largest_ministage = single.rounds = 1;
  EXPECT_EQ(MemoryOf(costs(), single, {4}).gathered, Gradient(Layer()) + Parameter(Layer()));
  EXPECT_EQ(MemoryOf(costs(), single, {2, 2}).gathered, Gradient(2 * Layer()) + Parameter(Layer()));
}

// When the large microbatch comes last, the others have left nothing by its backward.
TEST_P(EngineMemoryTest, ThePeakFollowsTheOrderOfUnlikeMicrobatches) {
  const auto activations = [&](ScheduleFamily schedule, const std::vector<int64_t>& microbatches) {
    RankDuty duty = Middle(schedule, 1);
    duty.group_size = 1;
    const MemoryByPurpose memory = MemoryOf(costs(), duty, microbatches);
    return memory.boundaries + memory.saved + memory.workspace;
  };
  for (const ScheduleFamily schedule : {ScheduleFamily::kGPipe, ScheduleFamily::kLayered}) {
    EXPECT_LT(activations(schedule, {1, 1, 1, 5}), activations(schedule, {5, 1, 1, 1}));
    EXPECT_GE(activations(schedule, {1, 1, 1, 5}), activations(schedule, {5}));
  }
  EXPECT_EQ(activations(ScheduleFamily::k1F1B, {1, 4, 1, 1}), activations(ScheduleFamily::k1F1B, {4, 1, 1}));
}

// Of four layers the rank keeps half for its stage, and owns half of that: the other pipeline owns the rest.
TEST_P(EngineMemoryTest, BesideOtherPipelinesARankKeepsMoreThanItOwns) {
  RankDuty duty = Middle(ScheduleFamily::k1F1B, 3);
  duty.sums_across = true;
  duty.replica_share = 0.5;
  const MemoryByPurpose sharded = MemoryOf(costs(), duty, {2, 2});
  EXPECT_EQ(sharded.parameters, Parameter(2 * Layer()));
  EXPECT_EQ(sharded.gradients, Gradient(2 * Layer()));
  EXPECT_EQ(sharded.optimizer, costs().optimizer_bytes_per_element() * Layer());
  EXPECT_EQ(sharded.gathered, Gradient(2 * Layer()) + Parameter(2 * Layer()));
  duty.zero_stage = 2;
  EXPECT_EQ(MemoryOf(costs(), duty, {2, 2}).parameters, Parameter(4 * Layer()));
  EXPECT_EQ(MemoryOf(costs(), duty, {2, 2}).gradients, Gradient(2 * Layer()));
  duty.group_size = 1;
  duty.share = 1;
  EXPECT_EQ(MemoryOf(costs(), duty, {2, 2}).gradients, Gradient(4 * Layer())) << "a rank alone keeps all";
  EXPECT_EQ(MemoryOf(costs(), duty, {2, 2}).gathered, 0);
}

// A tied embedding stays whole where it is.
TEST_P(EngineMemoryTest, BesideOtherPipelinesATiedEmbeddingIsNoShard) {
  RankDuty first = Middle(ScheduleFamily::kGPipe, 3);
  first.stage = 0;
  first.embedding = first.sums_across = true;
  const Costs& costs = tied_->costs;
  const int64_t embedding = costs.UnitElements(UnitKind::kEmbedding);
  const MemoryByPurpose memory = MemoryOf(costs, first, {2, 2});
  EXPECT_EQ(memory.parameters, Parameter(embedding + 2 * Layer()));
  EXPECT_EQ(memory.gradients, Gradient(embedding + 2 * Layer()));
  EXPECT_EQ(memory.gathered, Gradient(2 * Layer()) + Parameter(2 * Layer()));
}

// Two slots on the device, and a slot of the host for each input that waits.
TEST_P(EngineMemoryTest, InputsOfLayersWaitInHostMemory) {
  RankDuty duty = Middle(ScheduleFamily::kLayered, 3);
  duty.recompute = OpSet::All();
  const std::vector<int64_t> microbatches(8, 2);
  const MemoryByPurpose kept = MemoryOf(costs(), duty, microbatches);
  duty.offload.activations = true;
  const MemoryByPurpose away = MemoryOf(costs(), duty, microbatches);
  const int64_t input = costs().BoundaryBytes(2);
  EXPECT_EQ(kept.host, 0);
  EXPECT_EQ(away.host, 4 * 8 * input);
  EXPECT_EQ(kept.boundaries - away.boundaries, 4 * 8 * input);
  EXPECT_EQ(away.slots, 2 * input);
  EXPECT_EQ(kept.total() - kept.boundaries, away.total() - away.boundaries - away.slots);
}

// Half of four layers in a group that shares gradients: both moments wait, and come into two slots, a layer's in each.
TEST_P(EngineMemoryTest, MomentsThatWaitLeaveTwoSlots) {
  RankDuty duty = Middle(ScheduleFamily::kLayered, 2);
  const MemoryByPurpose kept = MemoryOf(costs(), duty, {2, 2});
  duty.offload.optimizer = true;
  const MemoryByPurpose away = MemoryOf(costs(), duty, {2, 2});
  const int64_t moments = 2 * Gradient(2 * Layer());
  EXPECT_EQ(kept.host, 0);
  EXPECT_NEAR(away.host, moments, 4 * kHostSlotAlignment);
  EXPECT_EQ(away.optimizer, kept.optimizer - moments) << "a master copy stays";
  EXPECT_NEAR(away.slots, moments / 2, 2 * kHostSlotAlignment);
  EXPECT_EQ(away.total() - away.optimizer - away.slots, kept.total() - kept.optimizer);
  EXPECT_GT(MemoryOf(costs(), duty, {}).host, 0) << "a rank that only stores has them there, too";
}

// Nothing of them stays but buffers: a ministage's layers and one more.
TEST_P(EngineMemoryTest, ParametersThatWaitComeIntoBuffersInTurn) {
  RankDuty duty = Middle(ScheduleFamily::kLayered, 2);
  duty.ministages = 4;
  duty.largest_ministage = 1;
  const MemoryByPurpose kept = MemoryOf(costs(), duty, {2, 2});
  duty.offload.parameters = true;
  const MemoryByPurpose away = MemoryOf(costs(), duty, {2, 2});
  EXPECT_EQ(away.parameters, 0);
  EXPECT_EQ(away.gathered - kept.gathered, Parameter(2 * Layer()));
  const int64_t owned = 2 * Layer(), cast = IsHalf(GetParam()) ? Parameter(owned) : 0;
  EXPECT_NEAR(away.host, Gradient(owned) + cast, 4 * kHostSlotAlignment);
  const int64_t master = IsHalf(GetParam()) ? Gradient(owned) : 0;
  EXPECT_EQ(away.optimizer, kept.optimizer - master);
  EXPECT_NEAR(away.slots, (Gradient(owned) + cast) / 2, 2 * kHostSlotAlignment);
  // Another rank of the stage keeps its own, and gathers as the others do.
  duty.offload = {};
  duty.stage_offload.parameters = true;
  const MemoryByPurpose beside = MemoryOf(costs(), duty, {2, 2});
  EXPECT_EQ(beside.parameters, IsHalf(GetParam()) ? 0 : Parameter(owned));
  EXPECT_EQ(beside.gathered, away.gathered);
  EXPECT_EQ(beside.host, 0);
  // One ministage is there all step, and with ZeRO 3 a unit at a time.
  duty.ministages = 1;
  duty.largest_ministage = 4;
  EXPECT_EQ(MemoryOf(costs(), duty, {2, 2}).gathered, Parameter(4 * Layer()) + Gradient(4 * Layer()));
  duty.zero_stage = 3;
  EXPECT_EQ(MemoryOf(costs(), duty, {2, 2}).gathered, Parameter(2 * Layer()) + Gradient(2 * Layer()));
}

// A stage of one rank has nobody to share with, and sums into buffers in turn all the same.
TEST_P(EngineMemoryTest, GradientsThatWaitHaveBuffersInTurn) {
  RankDuty duty = Middle(ScheduleFamily::kLayered, 2);
  duty.group_size = 1;
  duty.share = 1;
  duty.ministages = 4;
  duty.largest_ministage = 1;
  EXPECT_EQ(MemoryOf(costs(), duty, {2, 2}).gradients, Gradient(4 * Layer()));
  duty.offload = {.gradients = true, .optimizer = true};
  const MemoryByPurpose away = MemoryOf(costs(), duty, {2, 2});
  EXPECT_EQ(away.gradients, 0);
  EXPECT_EQ(away.gathered, Gradient(2 * Layer()));
  EXPECT_EQ(away.host, 3 * Gradient(4 * Layer()));
}

TEST_P(EngineMemoryTest, StateAsPapersKeepItIsThePublishedLedgers) {
  EXPECT_TRUE(IsEngines(costs()));
  EXPECT_FALSE(IsEngines(MakePublishedSetting(Nodes({{"T4", "T4"}}), Work(false))->costs));
}

INSTANTIATE_TEST_SUITE_P(Types, EngineMemoryTest, testing::Values(DType::kFloat32, DType::kFloat16, DType::kFloat64),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

}  // namespace
}  // namespace motley::planner
