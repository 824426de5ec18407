#include "planner/answers/explain_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/answers/explain_offload.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// What the ranks of one kind do in one stage.
struct Row {
  int ranks = 0;
  int64_t batch = 0;
  double busiest_seconds = 0, fullest = 0;  // of usable memory
  int64_t peak_bytes = 0, context_bytes = 0;
};

class Explainer {
 public:
  Explainer(const Setting& setting, const Evaluation& evaluation)
      : setting_(setting), evaluation_(evaluation), plan_(evaluation.plan) {
    for (int d = 0; d < setting.num_devices(); ++d) index_[setting.cluster.devices[d].id] = d;
  }

  std::string Text(const Evaluation& evaluation, const LowerBound& bound) {
    out_ = ToText(plan_);
    for (const std::string& lack : evaluation.does_not_fit) absl::StrAppend(&out_, "does not fit: ", lack, "\n");
    if (bound.seconds > 0) {
      absl::StrAppendFormat(&out_, "\nno plan can be faster than %s: %s. This one is %.1f %% above it.\n",
                            SecondsText(bound.seconds), bound.because, 100 * plan_.predicted.gap());
    }
    return Details();
  }

  std::string Details() {
    Stages();
    if (const std::string offload = ExplainOffload(setting_, evaluation_); !offload.empty()) {
      absl::StrAppend(&out_, "\n", offload);
    }
    Provenances();
    return std::move(out_);
  }

 private:
  void Stages() {
    absl::StrAppend(&out_, "\nwhat each kind of device does:\n");
    for (size_t p = 0; p < plan_.pipelines.size(); ++p) {
      for (size_t s = 0; s < plan_.pipelines[p].stages.size(); ++s) Stage(p, s, plan_.pipelines[p].stages[s]);
    }
  }

  void Stage(size_t p, size_t s, const StagePlan& stage) {
    std::map<int, Row> rows;  // by kind
    for (const UnitPlan& unit : stage.units) {
      std::set<int> kinds;  // a unit's ranks share its samples: they count once
      for (const RankPlan& rank : unit.ranks) {
        const auto found = index_.find(rank.device);
        if (found == index_.end()) continue;
        const int kind = setting_.KindOf(found->second);
        Row& row = rows[kind];
        ++row.ranks;
        if (kinds.insert(kind).second) row.batch += unit.batch();
        row.busiest_seconds = std::max(row.busiest_seconds, rank.predicted.busy_seconds);
        row.peak_bytes = std::max(row.peak_bytes, rank.predicted.peak_bytes);
        row.context_bytes = std::max(row.context_bytes, rank.predicted.memory.context);
        row.fullest = std::max(row.fullest, static_cast<double>(rank.predicted.peak_bytes) /
                                                static_cast<double>(setting_.UsableBytes(found->second)));
      }
    }
    for (const auto& [kind, row] : rows) {
      const double step = plan_.predicted.step_seconds;
      absl::StrAppendFormat(
          &out_, "  pipeline %d stage %d, %d x %s: %d samples, busy %s of %s (%.0f %%), memory %s (%.0f %% of usable)%s\n", p, s,
          row.ranks, setting_.cluster.kinds[kind].name, row.batch, SecondsText(row.busiest_seconds), SecondsText(step),
          step > 0 ? 100 * row.busiest_seconds / step : 0, BytesText(row.peak_bytes), 100 * row.fullest,
          row.context_bytes > 0 ? absl::StrCat(", of it context ", BytesText(row.context_bytes)) : "");
    }
  }

  void Provenances() {
    absl::StrAppend(&out_, "\nlatencies:\n");
    for (int kind = 0; kind < setting_.costs.num_kinds(); ++kind) {
      const Provenance& from = setting_.costs.provenance(kind);
      absl::StrAppend(&out_, "  ", setting_.cluster.kinds[kind].name, ": ", from.source);
      if (from.estimated) absl::StrAppendFormat(&out_, " (an estimate: %.2f to %.2f of it)", from.low, from.high);
      absl::StrAppend(&out_, "\n");
    }
    for (const std::string& note : setting_.cluster.notes) absl::StrAppend(&out_, "cluster: ", note, "\n");
  }

  const Setting& setting_;
  const Evaluation& evaluation_;
  const Plan& plan_;
  std::map<DeviceId, int> index_;
  std::string out_;
};

}  // namespace

std::string ExplainDetails(const Setting& setting, const Evaluation& evaluation) {
  return Explainer(setting, evaluation).Details();
}

std::string ExplainPlan(const Setting& setting, const Evaluation& evaluation, const LowerBound& bound) {
  return Explainer(setting, evaluation).Text(evaluation, bound);
}

}  // namespace motley::planner
