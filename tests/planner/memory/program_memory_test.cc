#include "planner/memory/program_memory.h"

#include <algorithm>
#include <numeric>

#include "common/model/operators.h"
#include "gtest/gtest.h"
#include "planner/plan/unit_slices.h"
#include "planner/pricing/price.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

// Two stages, two microbatches of two samples.
Plan TwoByTwo(const Setting& setting) {
  return PlanOf(setting, ScheduleFamily::kGPipe,
                {{{StageOf(setting, 0, {{2, 2}}, {{0, 1}}), StageOf(setting, 1, {{2, 2}}, {{2, 3}})}}});
}

std::unique_ptr<Setting> RunnableSetting(int64_t batch, bool launches_ahead = true, bool runnable = true) {
  PlanRequest request;
  request.runnable = runnable;
  Cluster cluster = Nodes({{"T4", "T4"}});
  for (CardKind& kind : cluster.kinds) kind.launches_ahead = launches_ahead;
  auto setting = Setting::Create(std::move(cluster), WorkOf(MediumModel(4, false), batch), request, nullptr);
  EXPECT_TRUE(setting.ok()) << setting.status();
  return *std::move(setting);
}

// As the engine counts: the room of the second gradient is there while the lane waits for it, and tokens are not the walk's.
TEST(ProgramMemoryTest, TheNextHandOverHasItsRoom) {
  const auto setting = RunnableSetting(4, /*launches_ahead=*/false);
  const auto programs = ScheduleAndLower(*setting, TwoByTwo(*setting));
  ASSERT_TRUE(programs.ok()) << programs.status();
  const Costs& costs = setting->costs;
  const int kind = setting->KindOf(0);
  ActivationBytes most;
  const ActivationBytes peak = PeakActivations(costs, kind, (*programs)[0], {}, &most);
  EXPECT_EQ(most.saved, peak.saved);
  EXPECT_EQ(most.boundaries, peak.boundaries);
  EXPECT_EQ(most.workspace, std::max(peak.workspace, costs.WorkspaceBytes(kind, UnitKind::kEmbedding, 2)));
  EXPECT_EQ(peak.boundaries, (2 * 2 + 3) * costs.BoundaryBytes(2));
  EXPECT_EQ(peak.saved, 2 * 2 * costs.SavedBytes(kind, UnitKind::kLayer, OpSet::None(), 2));
  EXPECT_EQ(peak.workspace, costs.WorkspaceBytes(kind, UnitKind::kLayer, 2));
}

// On a card the first backward is launched while the last output may not have left, and takes its memory then.
TEST(ProgramMemoryTest, WhatIsLaunchedAheadStandsBesideWhatIsSent) {
  const auto setting = RunnableSetting(4);
  const auto programs = ScheduleAndLower(*setting, TwoByTwo(*setting));
  ASSERT_TRUE(programs.ok()) << programs.status();
  const Costs& costs = setting->costs;
  EXPECT_EQ(PeakActivations(costs, setting->KindOf(0), (*programs)[0]).boundaries, (2 * 2 + 3 + 1) * costs.BoundaryBytes(2));
}

// A layer after the other, six microbatches of two samples, everything recomputed. Without offload all inputs of layers are there
// when the head begins to go back; with it two slots, and the last one, for whose copy nobody has waited yet.
TEST(ProgramMemoryTest, InputsThatWaitOnTheHostAreNotThere) {
  for (const bool launches_ahead : {false, true}) {
    const auto setting = RunnableSetting(12, launches_ahead, /*runnable=*/false);
    const int64_t input = setting->costs.BoundaryBytes(2);
    const auto program = [&](bool offload) {
      Plan plan = PlanOf(*setting, ScheduleFamily::kLayered,
                         {{{StageOf(*setting, 0, {{2, 2, 2, 2, 2, 2}}, {{0, 0}, {1, 1}, {2, 2}, {3, 3}})}}});
      RankPlan& rank = plan.pipelines[0].stages[0].units[0].ranks[0];
      rank.recompute = OpSet::All();
      rank.offload.activations = offload;
      const auto priced = Price(*setting, std::move(plan));
      EXPECT_TRUE(priced.ok()) << priced.status();
      return priced->programs[0];
    };
    const Program kept = program(false), away = program(true);
    const auto boundaries = [&](const Program& of) { return PeakActivations(setting->costs, 0, of).boundaries; };
    EXPECT_EQ(away.slots, std::vector<int64_t>({input, input}));
    EXPECT_EQ(HostBytes(setting->costs, away, {}).inputs, 4 * 6 * input);
    EXPECT_EQ(HostBytes(setting->costs, away, {}).total(), 4 * 6 * input);
    EXPECT_EQ(HostBytes(setting->costs, kept, {}).total(), 0);
    // The head's inputs of all, and a gradient. What a card's allocator had for the two before is free two passes later, and no
    // pass lies between a layer's last forward and the head's first backward.
    EXPECT_EQ(boundaries(kept), (4 * 6 + 6 + 1) * input);
    EXPECT_EQ(boundaries(away), (6 + 1 + 1 + (launches_ahead ? 2 : 0)) * input);
    EXPECT_EQ(SlotBytes(away), 2 * input);
  }
}

// Two ranks of unlike shares, a quarter and three, whose state waits on the host but for one kind. As the engine keeps half types
// the master copy is with the parameters, and a cast beside it.
TEST(ProgramMemoryTest, StateThatWaitsOnTheHostIsNotOnTheDevice) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    PlanRequest request;
    const auto setting =
        Setting::Create(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(4, false), 8, dtype), request, nullptr).value();
    const int64_t size = 4, compute = dtype == DType::kFloat16 ? 2 : 4, master = compute < size ? size : 0;
    const auto memory = [&](const OffloadKinds& kinds) {
      StagePlan stage = StageOf(*setting, 0, {{2, 2}, {2, 2}}, {{0, 1}, {2, 3}}, 2);
      for (size_t r = 0; r < 2; ++r) {
        stage.units[r].ranks[0].shard_ratio = r == 0 ? 0.25 : 0.75;
        stage.units[r].ranks[0].offload = kinds;
      }
      const auto priced = Price(*setting, PlanOf(*setting, ScheduleFamily::kLayered, {{{stage}}}));
      EXPECT_TRUE(priced.ok()) << priced.status();
      const RankPrediction& predicted = priced->plan.pipelines[0].stages[0].units[0].ranks[0].predicted;
      EXPECT_EQ(predicted.most.held(), predicted.memory.held());
      EXPECT_GE(predicted.most.passes(), predicted.memory.passes()) << "of each its own";
      return predicted.memory;
    };
    const int64_t all = NumParameters(setting->workload.model), owned = all / 4;
    ASSERT_EQ(all % 4, 0);
    const MemoryByPurpose kept = memory({});
    EXPECT_EQ(kept.parameters, compute * all);
    EXPECT_EQ(kept.gradients, size * owned);
    EXPECT_EQ(kept.optimizer, (2 * size + master) * owned);
    // The slots: the largest units' areas, of the embedding in one and the head in the other.
    const int64_t largest = setting->costs.UnitElements(UnitKind::kEmbedding) / 4;
    const int64_t head = setting->costs.UnitElements(UnitKind::kHead) / 4;
    const auto slots = [&](int64_t bytes) { return bytes * (largest + head); };
    const MemoryByPurpose moments = memory({.optimizer = true});
    EXPECT_EQ(moments.host, 2 * size * owned);
    EXPECT_EQ(moments.optimizer, master * owned);
    EXPECT_EQ(moments.slots, slots(2 * size));
    EXPECT_EQ(moments.parameters, kept.parameters);
    EXPECT_EQ(moments.gradients, kept.gradients);
    EXPECT_EQ(moments.boundaries, kept.boundaries);
    const MemoryByPurpose parameters = memory({.parameters = true});
    EXPECT_EQ(parameters.host, (size + (master > 0 ? compute : 0)) * owned);
    EXPECT_EQ(parameters.parameters, 0);
    EXPECT_EQ(parameters.optimizer, 2 * size * owned);
    EXPECT_EQ(parameters.slots, slots(size + (master > 0 ? compute : 0)));
    const MemoryByPurpose gradients = memory({.gradients = true, .optimizer = true});
    EXPECT_EQ(gradients.host, 3 * size * owned);
    EXPECT_EQ(gradients.gradients, 0);
    EXPECT_EQ(gradients.gathered, kept.gathered);
  }
}

// By what it is. An area of 4 * 33 bytes is filled up to three cache lines.
TEST(ProgramMemoryTest, HostBytesSayWhatTheyAreOf) {
  const auto setting = RunnableSetting(4);
  Program program;
  program.num_units = 6;
  program.units = {1, 2};
  program.offloads = {.parameters = true, .gradients = true, .optimizer = true};
  const std::vector<int64_t> owned = {1000, 16, 33, 1000, 1000, 1000};
  const HostMemoryByPurpose all = HostBytes(setting->costs, program, owned);
  EXPECT_EQ(all.inputs, 0);
  EXPECT_EQ(all.gradients, 4 * (16 + 33));
  EXPECT_EQ(all.optimizer, 8 * (16 + 33));
  EXPECT_EQ(all.parameters, 4 * (16 + 33) + 48) << "16 * 33 bytes end 48 bytes before a cache line does";
  EXPECT_EQ(all.total(), 16 * (16 + 33) + 48);
  program.offloads = {.parameters = true};
  EXPECT_EQ(HostBytes(setting->costs, program, owned).total(), 64 + 192);
}

// What kernels take for themselves stands beside all that a layer's forward keeps.
TEST(ProgramMemoryTest, AForwardMayBeTheFullestMoment) {
  const auto plain = RunnableSetting(4);
  MotleyProfile profile;
  MeasuredCard& card = profile.cards.emplace_back();
  card.model = plain->workload.model_name;
  card.card = "T4";
  card.seq_len = plain->workload.seq_len;
  card.dtype = plain->workload.dtype;
  card.layer = {{1, 4}, {0.1, 0.4}, {0.2, 0.8}};
  profile.models[card.model] = plain->workload.model;
  constexpr int64_t kOfKernels = int64_t{1} << 30;
  const auto peak_with = [&](int64_t forward_workspace) {
    card.layer.workspace_bytes = {kOfKernels, kOfKernels};
    card.layer.forward_workspace_bytes = {forward_workspace, forward_workspace};
    const auto book = LatencyBook::Of(profile, "a test");
    EXPECT_TRUE(book.ok()) << book.status();
    const auto setting = Setting::Create(plain->cluster, plain->workload, plain->request, &*book);
    EXPECT_TRUE(setting.ok()) << setting.status();
    const auto programs = ScheduleAndLower(**setting, TwoByTwo(**setting));
    EXPECT_TRUE(programs.ok()) << programs.status();
    return PeakActivations((*setting)->costs, (*setting)->KindOf(0), (*programs)[0]).total();
  };
  EXPECT_EQ(peak_with(0), peak_with(1000)) << "a backward is fuller";
  EXPECT_EQ(peak_with(3 * kOfKernels) - peak_with(2 * kOfKernels), kOfKernels);
}

// Four pieces of one sample make one microbatch of the second stage: its room is there, whole, from the first of them. The first
// stage, whose order was mended, keeps five microbatches at once instead of 1F1B's two.
TEST(ProgramMemoryTest, AMendedOrderIsCountedAsItRuns) {
  const auto setting = RunnableSetting(8);
  const Plan plan =
      PlanOf(*setting, ScheduleFamily::k1F1B,
             {{{StageOf(*setting, 0, {std::vector<int64_t>(8, 1)}, {{0, 1}}, 0), StageOf(*setting, 1, {{4, 4}}, {{2, 3}}, 0)}}});
  const auto programs = ScheduleAndLower(*setting, plan);
  ASSERT_TRUE(programs.ok()) << programs.status();
  const Costs& costs = setting->costs;
  const int kind = setting->KindOf(0);
  const auto saved = [&](int64_t samples) { return 2 * costs.SavedBytes(kind, UnitKind::kLayer, OpSet::None(), samples); };
  EXPECT_GE(PeakActivations(costs, kind, (*programs)[0]).saved, saved(4));
  EXPECT_LE(PeakActivations(costs, kind, (*programs)[0]).saved, saved(5));
  const int64_t at_head = costs.SavedBytes(kind, UnitKind::kHead, OpSet::None(), 4);
  const ActivationBytes second = PeakActivations(costs, kind, (*programs)[1]);
  EXPECT_EQ(second.saved, saved(4) + at_head);
  // Inputs of two layers and the head, the gradient of the head's input, the next microbatch's room.
  EXPECT_EQ(second.boundaries, 5 * costs.BoundaryBytes(4));
}

// The first stage computes in one piece what the second one takes in four: two of them may be there before they are computed.
TEST(ProgramMemoryTest, TwoThatComeNextHaveTheirRooms) {
  const auto setting = RunnableSetting(8);
  const Plan plan =
      PlanOf(*setting, ScheduleFamily::k1F1B,
             {{{StageOf(*setting, 0, {{8}}, {{0, 1}}, 0), StageOf(*setting, 1, {std::vector<int64_t>(4, 2)}, {{2, 3}}, 0)}}});
  const auto programs = ScheduleAndLower(*setting, plan);
  ASSERT_TRUE(programs.ok()) << programs.status();
  const Costs& costs = setting->costs;
  const int kind = setting->KindOf(1);
  const int64_t border = costs.BoundaryBytes(2);
  // Inputs of two layers and the head, the gradient of the head's input; the rooms of what comes; the gradient sent last.
  EXPECT_EQ(PeakActivations(costs, kind, (*programs)[1]).boundaries, (4 + 2 + 1) * border);
}

// On a card a lane issues all that waits for nothing more, and what it receives has its room from then on.
TEST(ProgramMemoryTest, RoomsDoNotGrowWithTheMicrobatches) {
  const auto boundaries = [](int64_t microbatches, ScheduleFamily schedule) {
    PlanRequest request;
    request.runnable = true;
    const auto setting =
        Setting::Create(Nodes({{"T4", "T4", "T4"}}), WorkOf(MediumModel(6, false), microbatches), request, nullptr).value();
    PipelinePlan pipeline;
    for (int s = 0; s < 3; ++s) {
      pipeline.stages.push_back(
          StageOf(*setting, s, {std::vector<int64_t>(static_cast<size_t>(microbatches), 1)}, {{2 * s, 2 * s + 1}}, 0));
    }
    const auto programs = ScheduleAndLower(*setting, PlanOf(*setting, schedule, {pipeline}));
    EXPECT_TRUE(programs.ok()) << programs.status();
    return PeakActivations(setting->costs, setting->KindOf(1), (*programs)[1]).boundaries / setting->costs.BoundaryBytes(1);
  };
  for (const ScheduleFamily schedule : {ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
    EXPECT_EQ(boundaries(64, schedule), boundaries(8, schedule)) << ScheduleName(schedule);
  }
}

// What trains makes its logits when it goes back. Both devices have the whole model.
TEST(ProgramMemoryTest, AHeadsForwardTakesNothing) {
  const auto setting = RunnableSetting(4);
  const auto programs =
      ScheduleAndLower(*setting, PlanOf(*setting, ScheduleFamily::kGPipe, {{{StageOf(*setting, 0, {{2}, {2}}, {{0, 3}})}}}));
  ASSERT_TRUE(programs.ok()) << programs.status();
  const Costs& costs = setting->costs;
  const auto peak_before = [&](const auto& is_end) {
    Program program = (*programs)[0];
    program.instructions.erase(std::find_if(program.instructions.begin(), program.instructions.end(), is_end),
                               program.instructions.end());
    return PeakActivations(costs, setting->KindOf(0), program);
  };
  const ActivationBytes before = peak_before([&](const Instruction& i) {
    const auto* const forward = std::get_if<Forward>(&i.op);
    return forward != nullptr && forward->unit == (*programs)[0].num_units - 1;
  });
  const ActivationBytes behind = peak_before([](const Instruction& i) { return std::holds_alternative<Backward>(i.op); });
  EXPECT_GT(before.total(), 0);
  EXPECT_EQ(behind.total(), before.total());
  EXPECT_EQ(behind.saved, before.saved);
}

// What a tensor-parallel unit sums between the segments of a layer stays although all is recomputed, and of the head three
// numbers a row. Where both ranks have a half, state and buffers are those of half a model and what is not divided.
TEST(ProgramMemoryTest, ATensorParallelRankKeepsItsSums) {
  const auto setting = RunnableSetting(2);
  StagePlan stage = StageOf(*setting, 0, {{2}, {}}, {{0, 3}}, 1, OpSet::All());
  stage.units[0].ranks.push_back(stage.units[1].ranks[0]);
  stage.units.resize(1);
  for (RankPlan& rank : stage.units[0].ranks) rank.tp_share = 0.5;
  const Plan plan = PlanOf(*setting, ScheduleFamily::kGPipe, {{{stage}}});
  auto programs = ScheduleAndLower(*setting, plan);
  ASSERT_TRUE(programs.ok()) << programs.status();
  const Costs& costs = setting->costs;
  const int kind = setting->KindOf(0);
  Program& program = (*programs)[0];
  const auto backward = std::find_if(program.instructions.begin(), program.instructions.end(),
                                     [](const Instruction& i) { return std::holds_alternative<Backward>(i.op); });
  program.instructions.erase(backward, program.instructions.end());
  const ActivationBytes peak = PeakActivations(costs, kind, program, {0, 4, 8});
  EXPECT_EQ(peak.boundaries, 5 * costs.BoundaryBytes(2));
  EXPECT_EQ(peak.saved, 4 * costs.BoundaryBytes(2) + costs.SavedBytes(kind, UnitKind::kHead, OpSet::None(), 2, 0.5) +
                            2 * kNumbersOfALogitsRow * 4 * setting->workload.seq_len);
  const auto priced = Price(*setting, plan);
  ASSERT_TRUE(priced.ok()) << priced.status();
  EXPECT_TRUE(priced->plan.predicted.as_run);
  const ModelShape& model = setting->workload.model;
  int64_t owned = 0;
  for (size_t r = 0; r < 2; ++r) {
    const MemoryByPurpose& memory = priced->plan.pipelines[0].stages[0].units[0].ranks[r].predicted.memory;
    const SliceElements slice = ElementsOf(model, {static_cast<int64_t>(4 * r), static_cast<int64_t>(4 * r + 4), 8});
    const int64_t elements = std::accumulate(slice.all.begin(), slice.all.end(), int64_t{0});
    EXPECT_EQ(memory.parameters, 4 * elements);
    EXPECT_EQ(memory.gradients, 4 * elements);
    EXPECT_EQ(memory.gathered, 0);
    EXPECT_EQ(memory.saved, priced->plan.pipelines[0].stages[0].units[0].ranks[0].predicted.memory.saved);
    owned += memory.optimizer / 8;
  }
  EXPECT_EQ(owned, NumParameters(model));
}

}  // namespace
}  // namespace motley::planner
