// One stage, layered: what is predicted of a plan (Evaluate: step graph and memory model) is what its ranks' programs do, run
// here by a simulator of a few lines and walked for their memory.
#include <algorithm>
#include <array>
#include <numeric>

#include "gtest/gtest.h"
#include "planner/lowering/layered.h"
#include "planner/lowering/program_memory.h"
#include "planner/lowering/program_order.h"
#include "planner/plan/placement.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

// Lanes in order, dependencies, collectives when all ranks are there.
class ProgramRun {
 public:
  ProgramRun(const Setting& setting, const std::vector<double>& shares, const std::vector<Program>& programs)
      : setting_(setting), shares_(shares), programs_(programs), ranks_(programs.size()) {
    devices_.resize(programs.size());
    std::iota(devices_.begin(), devices_.end(), 0);
    for (size_t r = 0; r < programs.size(); ++r) {
      for (const Instruction& instruction : programs[r].instructions) Next(r, instruction);
    }
    for (const Rank& rank : ranks_) {
      for (const double free : rank.free) seconds_ = std::max(seconds_, free);
    }
  }

  double seconds() const { return seconds_; }

 private:
  struct Rank {
    std::vector<double> end;
    std::array<double, kNumLanes> free{};
    size_t collectives = 0;
  };

  // Ranks are walked one after another: a collective begins when the slowest is there, which is known once the last rank has been
  // walked to it. So whoever comes to one before the others walks them there first.
  void Next(size_t r, const Instruction& instruction) {
    Rank& rank = ranks_[r];
    if (rank.end.size() > static_cast<size_t>(&instruction - programs_[r].instructions.data())) return;  // was walked already
    const Lane lane = LaneOf(instruction.op);
    if (lane == Lane::kCollective) return Meet();
    double& free = rank.free[static_cast<size_t>(lane)];
    free = Ready(r, instruction) + Seconds(r, instruction.op);
    rank.end.push_back(free);
  }

  void Meet() {
    double begin = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const std::vector<Instruction>& all = programs_[r].instructions;
      while (LaneOf(all[ranks_[r].end.size()].op) != Lane::kCollective) Next(r, all[ranks_[r].end.size()]);
      begin = std::max(begin, Ready(r, all[ranks_[r].end.size()]));
    }
    const double end = begin + Seconds(0, programs_[0].instructions[ranks_[0].end.size()].op);
    for (Rank& rank : ranks_) {
      rank.free[static_cast<size_t>(Lane::kCollective)] = end;
      rank.end.push_back(end);
    }
  }

  double Ready(size_t r, const Instruction& instruction) const {
    double ready = ranks_[r].free[static_cast<size_t>(LaneOf(instruction.op))];
    for (const int32_t a : instruction.after) ready = std::max(ready, ranks_[r].end[a]);
    return ready;
  }

  // Of an instruction of rank r; a collective takes all ranks the same.
  double Seconds(size_t r, const Operation& op) const {
    return std::visit([&](const auto& o) { return SecondsOf(r, o); }, op);
  }

  double SecondsOf(size_t, const Gather& g) const { return RingSeconds(Collective::kAllGather, g.unit); }
  double SecondsOf(size_t, const ReduceScatter& s) const { return RingSeconds(Collective::kReduceScatter, s.unit); }
  double SecondsOf(size_t, const ReduceScalars&) const { return setting_.links.TreeSeconds(devices_); }
  double SecondsOf(size_t r, const Forward& f) const { return ForwardSeconds(r, f.unit, f.microbatch); }
  double SecondsOf(size_t r, const Recompute& c) const { return ForwardSeconds(r, c.unit, c.microbatch); }
  double SecondsOf(size_t r, const Backward& b) const {
    return setting_.costs.BackwardSeconds(Kind(r), UnitKindOf(programs_[r], b.unit), Samples(r, b.microbatch));
  }
  double SecondsOf(size_t r, const OptimizerStep&) const {
    return setting_.costs.OptimizerSeconds(Kind(r), shares_[r] * static_cast<double>(setting_.costs.TotalElements()));
  }
  double SecondsOf(size_t, const Release&) const { return 0; }
  double SecondsOf(size_t, const ZeroGrad&) const { return 0; }

  int Kind(size_t r) const { return setting_.KindOf(static_cast<int>(r)); }
  double Samples(size_t r, int32_t microbatch) const { return static_cast<double>(programs_[r].microbatches[microbatch]); }
  double ForwardSeconds(size_t r, int32_t unit, int32_t microbatch) const {
    return setting_.costs.ForwardSeconds(Kind(r), UnitKindOf(programs_[r], unit), Samples(r, microbatch));
  }
  double RingSeconds(Collective collective, int32_t unit) const {
    const int64_t bytes = setting_.costs.layout()[unit].num_elements * setting_.costs.element_bytes();
    return setting_.links.SecondsAlone(setting_.links.Ring(collective, devices_, static_cast<double>(bytes), shares_));
  }

  const Setting& setting_;
  const std::vector<double>& shares_;
  const std::vector<Program>& programs_;
  std::vector<int> devices_;
  std::vector<Rank> ranks_;
  double seconds_ = 0;
};

struct Duty {
  double share = 0;
  std::vector<int64_t> microbatches;
  std::string recompute;
};

void ExpectAgreement(const Setting& setting, const std::vector<Duty>& duties) {
  const int64_t layers = setting.workload.model.num_layers;
  StagePlan stage;
  std::vector<double> shares;
  for (size_t u = 0; u < duties.size(); ++u) {
    RankPlan rank;
    rank.device = setting.cluster.devices[u].id;
    rank.shard_ratio = duties[u].share;
    rank.recompute = ParseOpSet(duties[u].recompute).value();
    shares.push_back(duties[u].share);
    stage.units.push_back({{rank}, duties[u].microbatches});
  }
  stage.ministages = {{0, layers - 1}};
  stage.placement = PlaceByShares(UnitElements(setting.costs.layout()), shares);
  const Plan whole = PlanOf(setting, ScheduleFamily::kLayered, {{{stage}}});
  const auto programs = LowerTraining(whole, setting.workload.model);
  ASSERT_TRUE(programs.ok()) << programs.status();
  ASSERT_EQ(CheckOrder(*programs), absl::OkStatus());
  const double step = ProgramRun(setting, shares, *programs).seconds();
  stage.ministages.clear();
  for (int64_t l = 0; l < layers; ++l) stage.ministages.push_back({l, l});
  for (const Plan& plan : {whole, PlanOf(setting, ScheduleFamily::kLayered, {{{stage}}})}) {
    const auto predicted = Evaluate(setting, plan);
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    EXPECT_NEAR(predicted->plan.predicted.step_seconds, step, 1e-6 * step);
    for (size_t u = 0; u < duties.size(); ++u) {
      const RankPrediction& rank = predicted->plan.pipelines[0].stages[0].units[u].ranks[0].predicted;
      const int64_t activations = rank.memory.boundaries + rank.memory.saved + rank.memory.workspace;
      const int64_t walked = ActivationPeakBytes(setting.costs, setting.KindOf(static_cast<int>(u)), (*programs)[u]);
      EXPECT_NEAR(static_cast<double>(activations), static_cast<double>(walked), 64) << u;
      EXPECT_EQ(rank.memory.gathered,
                BuffersOf(setting.workload.model, setting.costs.layout()).total() * setting.costs.element_bytes())
          << u;
      EXPECT_EQ(rank.memory.total(), rank.peak_bytes) << u;
    }
  }
}

TEST(ProgramAgreementTest, UnevenBatchesSharesAndRecomputation) {
  for (const bool tied : {false, true}) {
    for (const double nic : {0.2e9, 3e9, 100e9}) {  // bound by the network, by both, by compute
      SCOPED_TRACE(testing::Message() << "tied " << tied << ", NIC " << nic);
      const auto setting = MakeSetting(Nodes({{"A10G", "T4"}, {"V100-16GB"}}, 12e9, nic), WorkOf(MediumModel(6, tied), 20));
      ExpectAgreement(*setting, {{0.5, {4, 4, 3}, "full"}, {0.2, {2, 1}, "none"}, {0.3, {3, 3}, "none"}});
      ExpectAgreement(*setting, {{1, {5, 5}, "none"}, {0, {4, 3, 3}, "full"}, {0, {}, "none"}});
    }
  }
}

TEST(ProgramAgreementTest, RandomDuties) {
  RandomPlans random(3);
  for (int i = 0; i < 60; ++i) {
    const int64_t layers = 1 + random.Below(6);
    std::vector<Duty> duties(3);
    int64_t batch = 0;
    double sum = 0;
    for (Duty& duty : duties) {
      const int64_t own = &duty == &duties[0] ? 1 + random.Below(8) : random.Below(9);
      duty.microbatches = Microbatches(own, 1 + random.Below(8));
      duty.share = 0.05 + static_cast<double>(random.Below(100));
      duty.recompute = random.Below(2) == 0 ? "none" : "full";
      batch += own;
      sum += duty.share;
    }
    for (Duty& duty : duties) duty.share /= sum;
    const double nic = 1e9 * static_cast<double>(1 + random.Below(30));
    ExpectAgreement(
        *MakeSetting(Nodes({{"A10G", "T4"}, {"A100-40GB"}}, 12e9, nic), WorkOf(MediumModel(layers, random.Below(2) == 0), batch)),
        duties);
  }
}

}  // namespace
}  // namespace motley::planner
