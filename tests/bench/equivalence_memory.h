// Peak bytes of the ranks of random plans, measured against the planner's prediction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/bench/bench_report.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/memory_predictions.h"

namespace motley::engine {

// Differences from the prediction, of ranks.
struct MemoryGaps {
  int64_t ranks = 0;
  double sum = 0, worst = 0, most_above = 0;
  void Take(double excess) {
    ++ranks;
    sum += std::abs(excess);
    worst = std::max(worst, std::abs(excess));
    most_above = std::max(most_above, excess);
  }
  double mean() const { return ranks > 0 ? sum / static_cast<double>(ranks) : 0; }
};

class MemoryBench {
 public:
  // `text`: where a line for each rank goes; may be null.
  MemoryBench(uint64_t seed, UnitWidths widths, int64_t pipelines, const std::filesystem::path& folder, std::FILE* text)
      : seed_(seed), widths_(widths), pipelines_(pipelines), folder_(folder), text_(text) {}

  absl::Status Measure(int64_t n) {
    const PlannedJob planned = DrawWideJob(seed_, n, folder_, widths_, pipelines_);
    const absl::StatusOr<std::vector<RankMemory>> ranks = predictions_.AndMeasured(planned);
    if (!ranks.ok()) return ranks.status();
    size_t r = 0;
    for (const planner::PipelinePlan& pipeline : planned.plan.pipelines) {
      for (const planner::StagePlan& stage : pipeline.stages) {
        for (const planner::UnitPlan& unit : stage.units) {
          for (const planner::RankPlan& rank : unit.ranks) {
            Take(planned, stage, (*ranks)[r]);
            if (text_ != nullptr) Print(n, r, planned, pipeline.stages, stage, unit, rank, (*ranks)[r]);
            ++r;
          }
        }
      }
    }
    return absl::OkStatus();
  }

  void AddTo(bench::Report* report) const {
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
    report->AddGoal("memory, all: worst difference", 100 * all_.worst, "%", 3);
    report->AddGoal("memory, all: most above the prediction", 100 * all_.most_above, "%", 1);
  }

 private:
  void Take(const PlannedJob& planned, const planner::StagePlan& stage, const RankMemory& rank) {
    const double excess = rank.Excess(kUncountedBytes);
    all_.Take(excess);
    exact_.Take(rank.Excess());
    kinds_[std::string(planner::ScheduleName(planned.plan.schedule))].Take(excess);
    const bool shared = stage.units.size() > 1;
    if (stage.units.front().ranks.size() > 1) kinds_["ranks of units of several"].Take(excess);
    kinds_[shared ? absl::StrCat("several ranks, zero ", stage.zero_stage) : "ranks alone"].Take(excess);
  }

  void Print(int64_t n, size_t r, const PlannedJob& planned, const std::vector<planner::StagePlan>& stages,
             const planner::StagePlan& stage, const planner::UnitPlan& unit, const planner::RankPlan& planned_rank,
             const RankMemory& rank) const {
    const planner::MemoryByPurpose& memory = rank.predicted;
    const auto kib = [](int64_t bytes) { return absl::StrCat(bytes >> 10); };
    std::fprintf(text_, "%s\n",
                 absl::StrCat("plan ", n, " rank ", r, ": ", planned.job.Name(), "; ",
                              std::string(planner::ScheduleName(planned.plan.schedule)), ", stage ", &stage - stages.data(),
                              " of ", stages.size(), ", ", stage.units.size(), " ranks, zero ", stage.zero_stage, ", ministages ",
                              stage.ministages.size(), ", microbatches ", absl::StrJoin(unit.microbatches, "+"),
                              unit.ranks.size() > 1 ? absl::StrCat(", tp ", planned_rank.tp_share) : "",
                              planned_rank.recompute.all() ? ", recompute" : "", "; measured ", kib(rank.measured_bytes),
                              " KiB, predicted ", kib(memory.total()), ": parameters ", kib(memory.parameters), " gradients ",
                              kib(memory.gradients), " optimizer ", kib(memory.optimizer), " gathered ", kib(memory.gathered),
                              " boundaries ", kib(memory.boundaries), " saved ", kib(memory.saved), " workspace ",
                              kib(memory.workspace), "; ", 100 * rank.Excess(kUncountedBytes), " %")
                     .c_str());
  }

  const uint64_t seed_;
  const UnitWidths widths_;
  const int64_t pipelines_;
  const std::filesystem::path folder_;
  std::FILE* const text_;
  MemoryPredictions predictions_;
  MemoryGaps all_, exact_;  // exact: small differences, too
  std::map<std::string, MemoryGaps> kinds_;
};

}  // namespace motley::engine
