// The plan for people (docs/plan-language.md); nothing reads it back.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/plan.h"
#include "planner/quantity_text.h"

namespace motley::planner {
namespace {

// "11 = 2x4+3": runs of equal microbatches.
std::string BatchText(const UnitPlan& unit) {
  std::string runs;
  for (size_t i = 0; i < unit.microbatches.size();) {
    size_t end = i;
    while (end < unit.microbatches.size() && unit.microbatches[end] == unit.microbatches[i]) ++end;
    if (!runs.empty()) runs += "+";
    absl::StrAppend(&runs, end - i > 1 || unit.microbatches.size() == 1 ? absl::StrCat(end - i, "x") : "", unit.microbatches[i]);
    i = end;
  }
  return runs.empty() ? "0" : absl::StrCat(unit.batch(), " = ", runs);
}

std::string LayersText(const StagePlan& stage) {
  std::string text;
  for (const LayerRange& range : stage.ministages) absl::StrAppend(&text, text.empty() ? "" : ",", range.first, "-", range.last);
  return text;
}

void AppendStage(const StagePlan& stage, size_t* next_rank, std::string* out) {
  size_t device_width = 0, model_width = 0, batch_width = 0;
  for (const UnitPlan& unit : stage.units) {
    batch_width = std::max(batch_width, BatchText(unit).size());
    for (const RankPlan& rank : unit.ranks) {
      device_width = std::max(device_width, rank.device.value().size());
      model_width = std::max(model_width, rank.device_model.size());
    }
  }
  for (const UnitPlan& unit : stage.units) {
    for (const RankPlan& rank : unit.ranks) {
      absl::StrAppendFormat(out, "  rank %d %-*s %-*s  batch %-*s  shard %.3f  recompute %-4s  busy %s  peak %s\n",
                            (*next_rank)++, device_width, rank.device.value(), model_width, rank.device_model, batch_width,
                            BatchText(unit), rank.shard_ratio, rank.recompute, SecondsText(rank.predicted.busy_seconds),
                            BytesText(rank.predicted.peak_bytes));
    }
  }
}

}  // namespace

std::string ToText(const Plan& plan) {
  std::string out = absl::StrCat("plan epoch ", plan.epoch.value(), " ", plan.strategy, " batch ", plan.global_batch, " seq ",
                                 plan.seq_len, " ", std::string(DTypeName(plan.dtype)), " layered\n");
  size_t rank = 0;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const StagePlan& stage = plan.pipelines[p].stages[s];
      absl::StrAppend(&out, "pipeline ", p, " / stage ", s, " layers ", LayersText(stage), "\n");
      AppendStage(stage, &rank, &out);
    }
  }
  for (const UnusedDevice& unused : plan.unused)
    absl::StrAppend(&out, "  unused ", unused.device.value(), ": ", unused.because, "\n");
  absl::StrAppendFormat(&out, "predicted %s a step, %.0f tokens/s", SecondsText(plan.predicted.step_seconds),
                        plan.predicted.tokens_per_second);
  if (!plan.predicted.binding_constraint.empty()) absl::StrAppend(&out, "\nbound by: ", plan.predicted.binding_constraint);
  return out + "\n";
}

}  // namespace motley::planner
