// The ledger's formulas. (lowering/live_agreement_test.cc compares it with the live ledger, byte by byte.)
#include "planner/costs/memory_model.h"

#include "gtest/gtest.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

class MemoryModelTest : public testing::Test {
 protected:
  MemoryModelTest()
      : setting_(MakePublishedSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(12, false), 64, DType::kFloat16))) {}

  const Costs& costs() const { return setting_->costs; }
  int64_t Layer() const { return costs().UnitElements(UnitKind::kLayer); }
  // A middle stage of four layers in a group of four.
  RankDuty Middle(ScheduleFamily schedule, int zero_stage = 3) const {
    RankDuty duty;
    duty.layers = duty.largest_ministage = 4;
    duty.schedule = schedule;
    duty.stage = 1;
    duty.num_stages = 3;
    duty.zero_stage = zero_stage;
    duty.share = 0.25;
    duty.group_size = 4;
    return duty;
  }
  std::unique_ptr<Setting> setting_;
};

TEST_F(MemoryModelTest, TrainingStateByZeroStage) {
  const int64_t all = 4 * Layer(), quarter = all / 4;
  // Half precision: 2 + 2 + 12 bytes an element.
  const int64_t parameters[] = {2 * all, 2 * all, 2 * all, 2 * quarter},
                gradients[] = {2 * all, 2 * all, 2 * quarter, 2 * quarter},
                optimizer[] = {12 * all, 12 * quarter, 12 * quarter, 12 * quarter}, gathered[] = {0, 0, 4 * Layer(), 8 * Layer()};
  for (int zero = 0; zero <= 3; ++zero) {
    const MemoryByPurpose memory = MemoryOf(costs(), Middle(ScheduleFamily::k1F1B, zero), {2, 2});
    EXPECT_EQ(memory.parameters, parameters[zero]) << zero;
    EXPECT_EQ(memory.gradients, gradients[zero]) << zero;
    EXPECT_EQ(memory.optimizer, optimizer[zero]) << zero;
    EXPECT_EQ(memory.gathered, gathered[zero]) << zero;  // two layers of gradients, and of parameters
    EXPECT_EQ(memory.host, 0);
  }
  // Alone there is nothing to assemble.
  RankDuty alone = Middle(ScheduleFamily::k1F1B, 3);
  alone.group_size = 1;
  EXPECT_EQ(MemoryOf(costs(), alone, {2, 2}).gathered, 0);
}

// The engine's way: parameters in the half type only in buffers and where they are resident, gradients in float32; one rank steps
// an element also where nothing is sharded.
TEST_F(MemoryModelTest, TrainingStateOfTheEngineInAHalfType) {
  Workload workload = WorkOf(MediumModel(12, false), 64, DType::kFloat16);
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}}), workload);
  const Costs& mixed = setting->costs;
  const int64_t all = 4 * Layer(), quarter = all / 4;
  const int64_t parameters[] = {2 * all, 2 * all, 2 * all, 0}, gradients[] = {4 * all, 4 * all, 4 * quarter, 4 * quarter},
                optimizer[] = {12 * quarter, 12 * quarter, 12 * quarter, 12 * quarter},
                gathered[] = {0, 0, 8 * Layer(), 12 * Layer()};
  for (int zero = 0; zero <= 3; ++zero) {
    const MemoryByPurpose memory = MemoryOf(mixed, Middle(ScheduleFamily::k1F1B, zero), {2, 2});
    EXPECT_EQ(memory.parameters, parameters[zero]) << zero;
    EXPECT_EQ(memory.gradients, gradients[zero]) << zero;
    EXPECT_EQ(memory.optimizer, optimizer[zero]) << zero;
    EXPECT_EQ(memory.gathered, gathered[zero]) << zero;
  }
  RankDuty alone = Middle(ScheduleFamily::k1F1B, 3);
  alone.group_size = 1;
  alone.share = 1;
  EXPECT_EQ(MemoryOf(mixed, alone, {2, 2}).parameters, 2 * all) << "nobody gathers, so they are resident";
  EXPECT_EQ(mixed.StateBytesPerElement(), 16);
  EXPECT_EQ(mixed.RingBytes(Collective::kAllGather), 2);
  EXPECT_EQ(mixed.RingBytes(Collective::kReduceScatter), 4);
  EXPECT_EQ(mixed.RingBytes(Collective::kAllReduce), 3) << "a sum and a gather";
  EXPECT_EQ(costs().RingBytes(Collective::kReduceScatter), 2) << "the papers'";
}

TEST_F(MemoryModelTest, MicrobatchesInFlightBySchedule) {
  using enum ScheduleFamily;
  EXPECT_EQ(InFlight(kLayered, 1, 4, 1, 9), 9);
  EXPECT_EQ(InFlight(kGPipe, 1, 4, 1, 9), 9);
  EXPECT_EQ(InFlight(k1F1B, 1, 4, 1, 9), 3);
  EXPECT_EQ(InFlight(k1F1B, 1, 4, 1, 2), 2);
  EXPECT_EQ(InFlight(kZeroBubble, 3, 4, 1, 9), 4);
  EXPECT_EQ(InFlight(kZeroBubbleV, 3, 4, 2, 9), 8);  // ministages: four whole microbatches, as 1F1B's first stage
  EXPECT_EQ(InFlight(kInterleaved, 0, 4, 2, 8), 2 * 3 + 4 + 1);
  EXPECT_EQ(InFlight(kInterleaved, 0, 4, 2, 4), 8);  // no more than there are
  const std::vector<int64_t> microbatches(8, 2);
  const auto saved = [&](ScheduleFamily schedule) { return MemoryOf(costs(), Middle(schedule), microbatches).saved; };
  const int64_t of_one = costs().SavedBytes(0, UnitKind::kLayer, OpSet::None(), 4 * 2);
  EXPECT_EQ(saved(k1F1B), 2 * of_one);  // stage 1 of 3
  EXPECT_EQ(saved(kZeroBubble), 3 * of_one);
  RankDuty in_v = Middle(kZeroBubbleV);
  in_v.ministages = in_v.largest_ministage = 2;
  EXPECT_EQ(MemoryOf(costs(), in_v, microbatches).saved, 3 * of_one) << "as 1F1B's first stage";
  EXPECT_EQ(saved(kGPipe), 8 * of_one);
  EXPECT_EQ(saved(kLayered), 8 * of_one);
}

TEST_F(MemoryModelTest, RecomputedOperatorsKeepNothingBetweenThePasses) {
  RankDuty duty = Middle(ScheduleFamily::kLayered);
  const std::vector<int64_t> microbatches(8, 2);
  int64_t before = MemoryOf(costs(), duty, microbatches).saved;
  for (const OpSet ops :
       {OpSet::None().With(Op::kActivation), OpSet::None().With(Op::kActivation).With(Op::kNorm1), OpSet::All()}) {
    duty.recompute = ops;
    const MemoryByPurpose memory = MemoryOf(costs(), duty, microbatches);
    EXPECT_LT(memory.saved, before);
    before = memory.saved;
  }
  // All: one layer of one microbatch again, and every boundary.
  const MemoryByPurpose all = MemoryOf(costs(), duty, microbatches);
  EXPECT_EQ(all.saved, costs().SavedBytes(0, UnitKind::kLayer, OpSet::None(), 2));
  EXPECT_EQ(all.boundaries, costs().BoundaryBytes(4 * 16) + costs().BoundaryBytes(16) + costs().BoundaryBytes(2));
}

TEST_F(MemoryModelTest, OffloadMovesBytesToTheHost) {
  RankDuty duty = Middle(ScheduleFamily::kLayered, 2);
  duty.ministages = 4;
  duty.largest_ministage = 1;
  const std::vector<int64_t> microbatches(8, 2);
  const MemoryByPurpose stays = MemoryOf(costs(), duty, microbatches);
  duty.offload.parameters = true;
  const MemoryByPurpose parameters = MemoryOf(costs(), duty, microbatches);
  EXPECT_EQ(parameters.parameters, stays.parameters / 2);  // Zorse table 1: two of four ministages
  EXPECT_EQ(parameters.host, 2 * Layer());                 // its quarter of four layers
  EXPECT_EQ(parameters.gradients, stays.gradients / 2);    // stepped and freed by ministage
  duty.sums_across = true;
  EXPECT_EQ(MemoryOf(costs(), duty, microbatches).gradients, stays.gradients) << "all wait for the other pipelines";
  duty.sums_across = false;
  duty.offload.activations = true;
  duty.recompute = OpSet::All();
  const MemoryByPurpose activations = MemoryOf(costs(), duty, microbatches);
  EXPECT_EQ(activations.host - parameters.host, costs().BoundaryBytes(4 * 16));
  EXPECT_EQ(activations.boundaries, costs().BoundaryBytes(2 * 2) + costs().BoundaryBytes(2 * 2) + costs().BoundaryBytes(2));
  duty.offload.optimizer = true;
  const MemoryByPurpose optimizer = MemoryOf(costs(), duty, microbatches);
  EXPECT_EQ(optimizer.host - activations.host, stays.optimizer);
  EXPECT_EQ(optimizer.optimizer, stays.optimizer / 2);  // two layers of four stream through
}

TEST_F(MemoryModelTest, PipelinesShardAmongThemselves) {
  RankDuty duty = Middle(ScheduleFamily::k1F1B, 0);
  duty.group_size = 1;
  const MemoryByPurpose whole = MemoryOf(costs(), duty, {1});
  duty.replica_share = 0.5;
  const MemoryByPurpose optimizer = MemoryOf(costs(), duty, {1});
  EXPECT_EQ(optimizer.optimizer, whole.optimizer / 2);
  EXPECT_EQ(optimizer.gradients, whole.gradients);
  duty.replica_gradients = true;
  EXPECT_EQ(MemoryOf(costs(), duty, {1}).gradients, whole.gradients / 2);
}

TEST_F(MemoryModelTest, TensorParallelDividesStateAndProducts) {
  RankDuty duty = Middle(ScheduleFamily::k1F1B, 0);
  const MemoryByPurpose whole = MemoryOf(costs(), duty, {2});
  duty.tp_share = 0.25;
  const MemoryByPurpose quarter = MemoryOf(costs(), duty, {2});
  EXPECT_EQ(quarter.parameters, whole.parameters / 4);
  EXPECT_LT(quarter.saved, whole.saved);
  EXPECT_GT(quarter.saved, whole.saved / 4);  // norms' inputs stay whole
  EXPECT_EQ(quarter.boundaries, whole.boundaries);
}

TEST_F(MemoryModelTest, StorageOnlyRankHoldsItsShareAndTheBuffers) {
  const MemoryByPurpose memory = MemoryOf(costs(), Middle(ScheduleFamily::kLayered), std::vector<int64_t>{});
  EXPECT_EQ(memory.boundaries + memory.saved + memory.workspace, 0);
  EXPECT_GT(memory.gathered, 0);
  EXPECT_EQ(memory.total(), memory.parameters + memory.gradients + memory.optimizer + memory.gathered + memory.context);
}

TEST_F(MemoryModelTest, BothFormsAgreeAndMoreNeverNeedsLess) {
  RandomPlans random(5);
  for (int i = 0; i < 2000; ++i) {
    RankDuty duty = Middle(static_cast<ScheduleFamily>(random.Below(5)), static_cast<int>(random.Below(4)));
    duty.embedding = random.Below(2) == 0;
    duty.head = random.Below(2) == 0;
    duty.ministages = duty.schedule == ScheduleFamily::kInterleaved ? 2 : 1;
    duty.largest_ministage = 4 / duty.ministages;
    duty.recompute = random.Below(2) == 0 ? OpSet::All() : OpSet::None();
    duty.offload.activations = random.Below(4) == 0;
    const int64_t count = 1 + random.Below(9), size = 1 + random.Below(6), last = random.Below(size);
    std::vector<int64_t> microbatches(static_cast<size_t>(count), size);
    if (last > 0) microbatches.push_back(last);
    const MemoryByPurpose memory = MemoryOf(costs(), duty, microbatches);
    EXPECT_EQ(memory, MemoryOf(costs(), duty, count, size, last));
    EXPECT_LE(memory.total(), MemoryOf(costs(), duty, count + 1, size, last).total());
    EXPECT_LE(memory.total(), MemoryOf(costs(), duty, count, size + 1, last).total());
  }
}

}  // namespace
}  // namespace motley::planner
