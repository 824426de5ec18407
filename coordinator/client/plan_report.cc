#include "coordinator/client/plan_report.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "coordinator/client/plan_summary.h"
#include "coordinator/client/table.h"
#include "planner/util/quantity_text.h"

namespace motley::client {
namespace {

using planner::ComparisonRow;
using planner::LayerRange;
using planner::Plan;
using planner::PlanPrediction;

std::string FirstLine(const absl::Status& status) {
  const std::string message(status.message());
  return message.substr(0, message.find('\n'));
}

std::string FidelityName(planner::Fidelity fidelity) { return fidelity == planner::Fidelity::kPublished ? "published" : "tuned"; }

// Those without a plan last, in their order.
std::vector<const ComparisonRow*> FastestFirst(const std::vector<ComparisonRow>& rows) {
  std::vector<const ComparisonRow*> sorted;
  for (const ComparisonRow& row : rows) sorted.push_back(&row);
  std::stable_sort(sorted.begin(), sorted.end(), [](const ComparisonRow* a, const ComparisonRow* b) {
    if (!a->status.ok() || !b->status.ok()) return a->status.ok() && !b->status.ok();
    return a->plan.predicted.step_seconds < b->plan.predicted.step_seconds;
  });
  return sorted;
}

struct Column {
  const char* name;
  std::function<std::string(const Plan&)> text;
};

Json RankRow(const planner::RankPlan& rank, int number, size_t pipeline, size_t stage, const planner::StagePlan& s,
             const planner::UnitPlan& unit) {
  Json layers = Json::array();
  for (const LayerRange& range : s.ministages) layers.push_back({range.first, range.last});
  return {{"rank", number},
          {"device", rank.device.value()},
          {"device_model", rank.device_model},
          {"pipeline", pipeline},
          {"stage", stage},
          {"layers", std::move(layers)},
          {"batch", unit.batch()},
          {"microbatches", unit.microbatches},
          {"shard_ratio", rank.shard_ratio},
          {"tp_share", rank.tp_share},
          {"zero_stage", s.zero_stage},
          {"in_flight", s.in_flight},
          {"recompute", planner::ToText(rank.recompute)},
          {"offload", WordsOf(rank.offload)},
          {"busy_seconds", rank.predicted.busy_seconds},
          {"peak_bytes", rank.predicted.peak_bytes},
          {"memory", ToJson(rank.predicted.memory)}};
}

}  // namespace

Json ReportOf(const Plan& plan) {
  Json ranks = Json::array();
  int number = 0;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const planner::StagePlan& stage = plan.pipelines[p].stages[s];
      for (const planner::UnitPlan& unit : stage.units) {
        for (const planner::RankPlan& rank : unit.ranks) ranks.push_back(RankRow(rank, number++, p, s, stage, unit));
      }
    }
  }
  return {{"ranks", std::move(ranks)}};
}

Json ToJson(const planner::LowerBound& bound) { return {{"seconds", bound.seconds}, {"because", bound.because}}; }

Json ToJson(const planner::Sensitivity& sensitivity) {
  Json relaxations = Json::array();
  for (const planner::Relaxation& r : sensitivity.relaxations) {
    relaxations.push_back({{"what", r.what}, {"resource", r.resource}, {"gain", r.gain}});
  }
  return {{"helps_most", sensitivity.helps_most},
          {"relaxations", std::move(relaxations)},
          {"regret",
           {{"mean", sensitivity.regret_mean}, {"worst", sensitivity.regret_worst}, {"trials", sensitivity.regret_trials}}}};
}

Json ToJson(const planner::Worth& worth) {
  Json without = Json::array();
  for (const planner::NodeWorth& node : worth.without) {
    Json names = Json::array();
    for (const NodeName& name : node.alike) names.push_back(name.value());
    Json row = {{"without_any_of", std::move(names)}};
    if (node.step_seconds > 0) {
      row["step_seconds"] = node.step_seconds;
    } else {
      row["why_no_plan"] = std::string(node.status.message());
    }
    without.push_back(std::move(row));
  }
  Json json = {{"without", std::move(without)}};
  if (worth.machine) {
    json["best_machine"] = {{"node", worth.machine->node.value()}, {"step_seconds", worth.machine->step_seconds}};
  } else if (!worth.no_machine.ok()) {
    json["why_no_machine"] = std::string(worth.no_machine.message());
  }
  if (worth.runnable) {
    json["runs_here"] = {{"strategy", worth.runnable->strategy}, {"step_seconds", worth.runnable->predicted.step_seconds}};
  } else if (!worth.not_runnable.ok()) {
    json["why_none_runs_here"] = std::string(worth.not_runnable.message());
  }
  if (worth.half) {
    json["half_batch"] = {{"global_batch", worth.half->global_batch}, {"step_seconds", worth.half->step_seconds}};
  }
  return json;
}

Json ToJson(const planner::MemoryByPurpose& m) {
  Json json;
  for (const MemoryPurposeTraits& purpose : kMemoryPurposes) json[purpose.name] = m.*purpose.bytes;
  json["host"] = m.host;
  return json;
}

Json ToJson(const std::vector<ComparisonRow>& rows) {
  Json list = Json::array();
  for (const ComparisonRow& row : rows) {
    Json json = {{"strategy", row.strategy}, {"fidelity", FidelityName(row.fidelity)}};
    if (row.status.ok()) {
      const PlanPrediction& p = row.plan.predicted;
      json.update({{"step_seconds", p.step_seconds},
                   {"tokens_per_second", p.tokens_per_second},
                   {"mfu", p.mfu},
                   {"hfu", p.hfu},
                   {"tokens_per_dollar", p.tokens_per_dollar},
                   {"worst_memory", row.worst_memory},
                   {"idle_share", p.idle_share},
                   {"gap", p.gap()},
                   {"runnable", ToJson(row.runs, row.plan)},
                   {"binding_constraint", p.binding_constraint}});
    } else {
      json["why_not"] = std::string(row.status.message());
    }
    list.push_back(std::move(json));
  }
  return list;
}

void PrintPlan(std::ostream& out, const Plan& plan, Json report) {
  Json document = Json::parse(planner::ToJson(plan));
  document["report"] = std::move(report);
  PrintDocument(out, document);
}

Json ToJson(const planner::RunsHere& runs, const Plan& plan) {
  if (!runs.status.ok()) return {{"ok", false}, {"why", WhyNotHere(runs)}, {"another_runs", runs.another}};
  return {{"ok", true}, {"step_seconds", plan.predicted.step_seconds}};
}

void PrintComparison(std::ostream& out, const Screen& screen, const std::vector<ComparisonRow>& unsorted) {
  const std::vector<const ComparisonRow*> rows = FastestFirst(unsorted);
  const auto percent = [](double part) { return absl::StrFormat("%.1f %%", 100 * part); };
  const auto utilization = [&](double part) { return part > 0 ? percent(part) : "-"; };  // no peak is known of a CPU
  std::vector<Column> columns = {
      {"STRATEGY", [](const Plan& plan) { return plan.strategy; }},
      {"STEP", [](const Plan& plan) { return planner::SecondsText(plan.predicted.step_seconds); }},
      {"TOKENS/S", [](const Plan& plan) { return absl::StrFormat("%.0f", plan.predicted.tokens_per_second); }},
      {"MFU", [&](const Plan& plan) { return utilization(plan.predicted.mfu); }},
      {"HFU", [&](const Plan& plan) { return utilization(plan.predicted.hfu); }},
      {"TOKENS/$",
       [](const Plan& plan) {
         return plan.predicted.tokens_per_dollar > 0 ? planner::CountText(plan.predicted.tokens_per_dollar) : "-";
       }},
      {"IDLE", [&](const Plan& plan) { return percent(plan.predicted.idle_share); }},
      {"GAP", [&](const Plan& plan) { return plan.predicted.lower_bound_seconds > 0 ? percent(plan.predicted.gap()) : "-"; }},
  };
  std::erase_if(columns, [&](const Column& column) {
    return std::all_of(rows.begin(), rows.end(),
                       [&](const ComparisonRow* row) { return !row->status.ok() || column.text(row->plan) == "-"; });
  });
  std::vector<std::string> header = {"STRATEGY"}, reasons;
  for (size_t c = 1; c < columns.size(); ++c) header.push_back(columns[c].name);
  for (const char* last : {"MEMORY", "RUNS HERE", "BOUND BY"}) header.push_back(last);
  Table table(header);
  for (const ComparisonRow* row : rows) {
    std::vector<std::string> cells = {
        absl::StrCat(row->strategy, row->fidelity == planner::Fidelity::kPublished ? " (published)" : "")};
    if (row->status.ok()) {
      for (size_t c = 1; c < columns.size(); ++c) cells.push_back(columns[c].text(row->plan));
      cells.push_back(percent(row->worst_memory));
      cells.push_back(row->runs.status.ok() ? "yes" : "no");
      cells.push_back(row->plan.predicted.binding_constraint);
    } else {
      reasons.push_back(absl::StrCat(reasons.size() + 1, ": ", row->strategy, ": ", FirstLine(row->status)));
      cells.resize(header.size(), "-");
      cells.back() = absl::StrCat("no plan, see ", reasons.size());
    }
    table.Add(std::move(cells));
  }
  table.Spare({"HFU", "TOKENS/$", "IDLE", "GAP", "MFU"}).Print(out, screen);
  if (!reasons.empty()) out << "no plan:\n";
  for (const std::string& reason : reasons) out << Fold(CleanText(absl::StrCat("  ", reason)), screen.width, 5) << "\n";
}

void PrintOthers(std::ostream& out, const std::vector<ComparisonRow>& rows, const Plan& plan) {
  std::vector<const ComparisonRow*> others = FastestFirst(rows);
  std::erase_if(others, [&](const ComparisonRow* row) { return row->strategy == plan.strategy; });
  out << "\nother strategies' plans:\n";
  for (const ComparisonRow* row : others) {
    if (!row->status.ok()) {
      out << CleanText(absl::StrCat("  ", row->strategy, ": none; ", FirstLine(row->status), "\n"));
      continue;
    }
    const PlanPrediction& p = row->plan.predicted;
    const double more = p.step_seconds / plan.predicted.step_seconds - 1;
    out << CleanText(absl::StrCat("  ", row->strategy, ": ", planner::SecondsText(p.step_seconds), " a step, ",
                                  planner::ChangeText(more, "more", "less"), "; bound by ", p.binding_constraint, "\n"));
  }
}

}  // namespace motley::client
