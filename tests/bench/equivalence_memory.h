// Peak bytes of the ranks of random plans, and what of theirs waits in host memory, measured against the planner's prediction.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/bench/bench_report.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/memory_predictions.h"

namespace motley::engine {

// Differences from the prediction, of ranks.
struct MemoryGaps {
  static constexpr double kFarBelow = 0.03, kFarOff = 0.05;
  int64_t ranks = 0, far_below = 0, far_off = 0;
  double sum = 0, worst = 0, most_above = 0;
  void Take(double excess) {
    ++ranks;
    far_below += excess < -kFarBelow;
    far_off += std::abs(excess) > kFarOff;
    sum += std::abs(excess);
    worst = std::max(worst, std::abs(excess));
    most_above = std::max(most_above, excess);
  }
  double mean() const { return ranks > 0 ? sum / static_cast<double>(ranks) : 0; }
  double far_below_share() const { return ranks > 0 ? static_cast<double>(far_below) / static_cast<double>(ranks) : 0; }
};

class MemoryBench {
 public:
  using Draw = std::function<PlannedJob(int64_t n)>;
  // `text`: where a line for each rank goes; may be null.
  MemoryBench(Draw draw, std::FILE* text) : draw_(std::move(draw)), text_(text) {}

  absl::Status Measure(int64_t n) {
    const PlannedJob planned = draw_(n);
    const absl::StatusOr<std::vector<RankMemory>> ranks = predictions_.AndMeasured(planned);
    if (!ranks.ok()) return ranks.status();
    size_t r = 0;
    for (const planner::PipelinePlan& pipeline : planned.plan.pipelines) {
      for (const planner::StagePlan& stage : pipeline.stages) {
        for (const planner::UnitPlan& unit : stage.units) {
          for (const planner::RankPlan& rank : unit.ranks) {
            Take(planned, stage, rank, (*ranks)[r]);
            if (text_ != nullptr) Print(n, r, planned, pipeline.stages, stage, unit, rank, (*ranks)[r]);
            ++r;
          }
        }
      }
    }
    return absl::OkStatus();
  }

  // `offload`: a rank may hold less, as what leaves may be gone before anybody waits for it.
  void AddTo(bench::Report* report, bool offload) const {
    const auto add = [&](const std::string& name, const MemoryGaps& gaps) {
      const std::string what = absl::StrCat("memory, ", name, ": ");
      report->Add(what + "ranks", static_cast<double>(gaps.ranks), "1");
      report->Add(what + "mean difference", 100 * gaps.mean(), "%");
      report->Add(what + "worst difference", 100 * gaps.worst, "%");
      report->Add(what + "most above the prediction", 100 * gaps.most_above, "%");
    };
    for (const auto& [kind, gaps] : kinds_) add(kind, gaps);
    add("all, whatever the bytes", exact_);
    report->AddGoal("memory, all: mean difference", 100 * all_.mean(), "%", 1);
    for (const MemoryPurposeTraits& purpose : kMemoryPurposes) {
      const MemoryGaps& gaps = purposes_[static_cast<size_t>(purpose.purpose)];
      const std::string what = absl::StrCat("memory, ", purpose.name, ": ");
      report->Add(what + "mean difference of its own most", 100 * gaps.mean(), "%");
      report->Add(what + "most above the prediction", 100 * gaps.most_above, "%");
      report->Add(what + "ranks more than 5 % off", static_cast<double>(gaps.far_off), "1");
      report->AddGoal(what + "worst difference of its own most", 100 * gaps.worst, "%", 5);
    }
    if (offload) {
      report->AddGoal("memory, all: ranks more than 3 % below", 100 * all_.far_below_share(), "%", 1);
      report->AddGoal("host memory: ranks that hold other bytes than predicted", static_cast<double>(other_host_), "1", 0);
      report->Add("host memory: most of a rank", static_cast<double>(most_host_) / 1024, "KiB");
    } else {
      report->AddGoal("memory, all: worst difference", 100 * all_.worst, "%", 3);
    }
    report->AddGoal("memory, all: most above the prediction", 100 * all_.most_above, "%", 1);
  }

 private:
  void Take(const PlannedJob& planned, const planner::StagePlan& stage, const planner::RankPlan& planned_rank,
            const RankMemory& rank) {
    const double excess = rank.Excess(kUncountedBytes);
    all_.Take(excess);
    exact_.Take(rank.Excess());
    kinds_[std::string(planner::ScheduleName(planned.plan.schedule))].Take(excess);
    for (const std::string& word : WordsOf(planned_rank.offload)) kinds_["offloads " + word].Take(excess);
    if (planned.plan.optimizer_steps == planner::OptimizerSteps::kInTurn) kinds_["in turn"].Take(excess);
    for (const MemoryPurposeTraits& purpose : kMemoryPurposes) {
      purposes_[static_cast<size_t>(purpose.purpose)].Take(rank.ExcessOf(purpose.bytes, kUncountedBytes));
    }
    other_host_ += !rank.HostIsExact();
    most_host_ = std::max(most_host_, rank.measured_host_bytes);
    const bool shared = stage.units.size() > 1;
    if (stage.units.front().ranks.size() > 1) kinds_["ranks of units of several"].Take(excess);
    kinds_[shared ? absl::StrCat("several ranks, zero ", stage.zero_stage) : "ranks alone"].Take(excess);
  }

  void Print(int64_t n, size_t r, const PlannedJob& planned, const std::vector<planner::StagePlan>& stages,
             const planner::StagePlan& stage, const planner::UnitPlan& unit, const planner::RankPlan& planned_rank,
             const RankMemory& rank) const {
    const auto kib = [](int64_t bytes) { return absl::StrCat(bytes >> 10); };
    std::string purposes;
    for (const MemoryPurposeTraits& purpose : kMemoryPurposes) {
      const int64_t measured = rank.measured.most.*purpose.bytes, most = rank.predicted_most.*purpose.bytes;
      const bool far_off = std::abs(rank.ExcessOf(purpose.bytes, kUncountedBytes)) > MemoryGaps::kFarOff;
      absl::StrAppend(&purposes, " ", purpose.name, " ", kib(measured), " ", kib(most), far_off ? " OFF" : "");
    }
    std::fprintf(
        text_, "%s\n",
        absl::StrCat("plan ", n, " rank ", r, ": ", planned.job.Name(), "; ",
                     std::string(planner::ScheduleName(planned.plan.schedule)), ", stage ", &stage - stages.data(), " of ",
                     stages.size(), ", ", stage.units.size(), " ranks, zero ", stage.zero_stage, ", ministages ",
                     stage.ministages.size(), ", microbatches ", absl::StrJoin(unit.microbatches, "+"),
                     unit.ranks.size() > 1 ? absl::StrCat(", tp ", planned_rank.tp_share) : "",
                     planned_rank.recompute.all() ? ", recompute" : "",
                     planned_rank.offload.any() ? ", offloads " + InWords(planned_rank.offload) : "",
                     planned.plan.optimizer_steps == planner::OptimizerSteps::kInTurn ? ", in turn" : "", "; measured ",
                     kib(rank.measured_bytes), " KiB, predicted ", kib(rank.predicted.total()),
                     " (of each measured and predicted at most):", purposes, "; host measured ", rank.measured_host_bytes,
                     " predicted ", rank.predicted.host, "; ", 100 * rank.Excess(kUncountedBytes), " %")
            .c_str());
  }

  const Draw draw_;
  std::FILE* const text_;
  MemoryPredictions predictions_;
  MemoryGaps all_, exact_;  // exact: small differences, too
  std::array<MemoryGaps, kNumMemoryPurposes> purposes_;
  std::map<std::string, MemoryGaps> kinds_;
  int64_t other_host_ = 0, most_host_ = 0;
};

}  // namespace motley::engine
