#include "coordinator/client/plan_diff_command.h"

#include <CLI/CLI.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/offline_flags.h"
#include "coordinator/client/plan_file.h"
#include "coordinator/client/table.h"
#include "planner/answers/plan_diff.h"
#include "planner/answers/state_moves.h"
#include "planner/costs/workload.h"

namespace motley::client {
namespace {

struct PlanDiffFlags {
  std::string before, after, model;
};

// The model that the plans are for: as given, else as the plans name it. Plans of a live job name none; their placements tell the
// sizes.
Exit FindModel(const PlanDiffFlags& flags, const planner::Plan& after, std::optional<ModelShape>* model) {
  const std::string& name = flags.model.empty() ? after.model : flags.model;
  if (name.empty()) return {};
  absl::StatusOr<planner::Workload> workload = planner::LoadModel(name);
  if (workload.ok()) {
    *model = workload->model;
    return {};
  }
  return flags.model.empty() ? Exit() : FromPlanner(workload.status());
}

Json DiffToJson(const planner::PlanDiff& diff) {
  const auto changes = [](const std::vector<planner::Change>& list) {
    Json json = Json::array();
    for (const planner::Change& c : list) json.push_back({{"what", c.what}, {"before", c.before}, {"after", c.after}});
    return json;
  };
  Json devices = Json::array();
  for (const planner::DeviceChanges& group : diff.devices) {
    Json names = Json::array();
    for (const DeviceId& device : group.devices) names.push_back(device.value());
    devices.push_back({{"devices", std::move(names)}, {"changes", changes(group.changes)}});
  }
  return {{"plan", changes(diff.plan)}, {"devices", std::move(devices)}};
}

void PrintJson(std::ostream& out, const planner::PlanDiff& diff, const absl::StatusOr<std::vector<planner::StateMove>>& moves) {
  Json json = DiffToJson(diff);
  if (moves.ok()) {
    int64_t total = 0;
    json["moves"] = Json::array();
    for (const planner::StateMove& move : *moves) {
      total += move.bytes;
      json["moves"].push_back({{"from", move.from.value()}, {"to", move.to.value()}, {"bytes", move.bytes}});
    }
    json["moved_bytes"] = total;
  } else {
    json["moves_unknown_because"] = std::string(moves.status().message());
  }
  PrintDocument(out, json);
}

void PrintText(std::ostream& out, const Screen& screen, const planner::PlanDiff& diff,
               const absl::StatusOr<std::vector<planner::StateMove>>& moves) {
  out << (diff.empty() ? "nothing changes\n" : CleanText(planner::ToText(diff)));
  if (!moves.ok()) {
    out << "bytes to move: not known: " << CleanText(std::string(moves.status().message())) << "\n";
    return;
  }
  int64_t total = 0, between_nodes = 0;
  for (const planner::StateMove& move : *moves) {
    total += move.bytes;
    if (NodeOf(move.from) != NodeOf(move.to)) between_nodes += move.bytes;
  }
  out << "\nbytes to move: " << FormatBytes(total) << ", " << FormatBytes(between_nodes) << " of them between nodes\n";
  if (moves->empty()) return;
  Table table({"FROM", "TO", "BYTES"});
  for (const planner::StateMove& move : *moves) table.Add({move.from.value(), move.to.value(), FormatBytes(move.bytes)});
  table.Print(out, screen);
}

Exit Diff(Context& context, const PlanDiffFlags& flags) {
  planner::Plan before, after;
  if (Exit exit = LoadPlanFile(flags.before, &before); exit.code != 0) return exit;
  if (Exit exit = LoadPlanFile(flags.after, &after); exit.code != 0) return exit;
  std::optional<ModelShape> model;
  if (Exit exit = FindModel(flags, after, &model); exit.code != 0) return exit;
  if (model) {
    for (const auto& [file, plan] : {std::pair{&flags.before, &before}, std::pair{&flags.after, &after}}) {
      const absl::Status status = planner::Validate(*plan, *model);
      if (!status.ok()) return FromPlanner(absl::InvalidArgumentError(absl::StrCat(*file, ": ", std::string(status.message()))));
    }
  }
  const planner::PlanDiff diff = planner::Diff(before, after);
  const auto moves = planner::FindStateMoves(before, after, model ? &*model : nullptr);
  context.json ? PrintJson(context.out, diff, moves) : PrintText(context.out, context.screen, diff, moves);
  return {};
}

}  // namespace

Action AddPlanDiff(CLI::App& plan, CLI::App** parsed) {
  auto flags = std::make_shared<PlanDiffFlags>();
  CLI::App* app = plan.add_subcommand("diff", "what changes from one plan to another, and which bytes would move");
  app->add_option("A", flags->before, "a plan file: JSON or text")->required();
  app->add_option("B", flags->after, "another")->required();
  app->add_option("--model", flags->model, "preset or config.json, where the plans do not name it")->type_name("FILE");
  app->fallthrough();
  app->footer("Example: motley plan diff before.json after.json");
  *parsed = app;
  return [flags](Context& context) { return Diff(context, *flags); };
}

}  // namespace motley::client
