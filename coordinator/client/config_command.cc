#include "coordinator/client/config_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/job/job_fields.h"
#include "common/model/parameters.h"
#include "coordinator/client/json.h"
#include "coordinator/client/load_job.h"
#include "planner/live/job_request.h"

namespace motley::client {
namespace {

constexpr size_t kLongestShown = 60;

struct ConfigFlags {
  std::string file;
  std::vector<std::string> overrides;
};

Exit Check(Context& context, const ConfigFlags& flags) {
  if (Exit exit = RefuseDirectory(flags.file); exit.code != 0) return exit;
  auto file = LoadJob(flags.file, flags.overrides);
  if (!file.ok()) return FromJobFile(file.status());
  auto model = ResolveModel(file->config);
  if (!model.ok()) return FromJobFile(model.status());
  if (absl::Status plan = planner::CheckPlannerSection(file->config, *model); !plan.ok()) return FromJobFile(plan);
  const JobConfig& config = file->config;
  if (context.json) {
    PrintDocument(context.out,
                  Json{{"valid", true}, {"file", flags.file}, {"parameters", NumParameters(*model)}, {"notes", file->notes}});
    return {};
  }
  context.out << flags.file << " is valid: " << NumParameters(*model) << " parameters in " << model->num_layers << " layers, "
              << config.training.steps << " steps of " << config.training.global_batch_size << " x " << config.training.seq_len
              << " tokens\n";
  for (const std::string& note : file->notes) PrintProse(context, absl::StrCat("note: ", note));
  return {};
}

std::string Short(std::string text) {
  if (text.size() > kLongestShown) text = absl::StrCat(text.substr(0, kLongestShown - 3), "...");
  return text;
}

Exit Show(Context& context, const ConfigFlags& flags) {
  if (Exit exit = RefuseDirectory(flags.file); exit.code != 0) return exit;
  auto file = LoadJob(flags.file, flags.overrides);
  if (!file.ok()) return FromJobFile(file.status());
  Json values = Json::array();
  std::string section;
  for (const JobField& field : JobFields(file->config)) {
    const std::string& origin = file->origins[field.Path()];
    if (context.json) {
      values.push_back({{"key", field.Path()}, {"value", Json::parse(field.ValueText())}, {"origin", origin}});
      continue;
    }
    if (section != field.section) {
      section = std::string(field.section);
      context.out << "\n[" << section << "]\n";
    }
    std::string line = absl::StrCat(std::string(field.key), " = ", Short(field.ValueText()));
    line.resize(std::max<size_t>(line.size() + 2, 40), ' ');
    context.out << line << "# " << origin << "\n";
  }
  if (context.json) PrintDocument(context.out, Json{{"values", values}});
  return {};
}

}  // namespace

Action AddConfig(CLI::App& app) {
  auto flags = std::make_shared<ConfigFlags>();
  CLI::App* check = app.add_subcommand("check", "say whether the file is valid, or everything that is wrong with it");
  CLI::App* show = app.add_subcommand("show", "every value and where it came from");
  for (CLI::App* sub : {check, show}) {
    sub->add_option("FILE", flags->file, "the job file (TOML)")->required();
    sub->add_option("--set", flags->overrides, "section.key=value instead of the file's; may be given again")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    sub->fallthrough();
  }
  app.require_subcommand(1);
  return [flags, check](Context& context) { return check->parsed() ? Check(context, *flags) : Show(context, *flags); };
}

}  // namespace motley::client
