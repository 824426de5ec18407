#include "coordinator/store_commands.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/written_path.h"
#include "coordinator/core/config.h"
#include "coordinator/flags.h"
#include "coordinator/store/backups.h"
#include "coordinator/store/maintenance.h"

namespace motley::coordinator {
namespace {

using nlohmann::json;

// What is not there was to be read.
int CodeOf(const absl::Status& status) { return absl::IsNotFound(status) ? EX_NOINPUT : ExitCode(status); }

json ToJson(const StoreSummary& summary) {
  json rows, findings = json::array();
  for (size_t t = 0; t < kNumTables; ++t) rows[Tables()[t].name] = summary.rows[t];
  for (const StoreFinding& finding : summary.findings) findings.push_back({{"kind", finding.kind}, {"text", finding.text}});
  return {{"schema_version", summary.version}, {"store_id", summary.mark.store_id},
          {"commits", summary.mark.commits},   {"rows", rows},
          {"sound", findings.empty()},         {"findings", findings}};
}

std::string ToText(const StoreSummary& summary) {
  std::string text = absl::StrCat("store ", summary.mark.store_id, ", schema version ", summary.version, ", ",
                                  summary.mark.commits, " commits: ");
  for (size_t t = 0; t < kNumTables; ++t) absl::StrAppend(&text, t == 0 ? "" : ", ", summary.rows[t], " ", Tables()[t].name);
  return text;
}

struct Options {
  std::string config_file, folder, file, take_over;
  bool as_json = false;
};

int Check(const Options& options, std::ostream& out, std::ostream& error) {
  const absl::StatusOr<StoreSummary> summary = CheckStore(options.folder);
  if (!summary.ok()) {
    error << "motley-coordinator check: " << summary.status().message() << "\n";
    return CodeOf(summary.status());
  }
  if (options.as_json) {
    out << ToJson(*summary).dump(2, ' ', false, json::error_handler_t::replace) << "\n";
  } else {
    out << ToText(*summary) << "\n";
    for (const StoreFinding& finding : summary->findings) out << "  " << finding.text << "\n";
    out << (summary->findings.empty()
                ? "sound\n"
                : "not what was written; a coordinator that is started on it goes on with what is sound, and says so\n");
  }
  return summary->findings.empty() ? EX_OK : EX_DATAERR;
}

int BackUp(const Options& options, std::ostream& out, std::ostream& error) {
  const absl::StatusOr<StoreSummary> summary = BackUpStore(options.folder, options.file);
  if (!summary.ok()) {
    error << "motley-coordinator backup: " << summary.status().message() << "\n";
    return CodeOf(summary.status());
  }
  if (options.as_json) {
    out << ToJson(*summary).dump(2) << "\n";
  } else {
    out << ToText(*summary) << "\nwritten to " << options.file << "\n";
  }
  return EX_OK;
}

int Restore(const Options& options, std::ostream& out, std::ostream& error) {
  const absl::StatusOr<std::string> from = NewestBackup(options.take_over.empty() ? options.file : options.take_over);
  const absl::StatusOr<RestoredStore> restored =
      from.ok() ? RestoreStore(options.folder, {*from, !options.take_over.empty()}) : from.status();
  if (!restored.ok()) {
    error << "motley-coordinator restore: " << restored.status().message() << "\n";
    return CodeOf(restored.status());
  }
  if (options.as_json) {
    json body = ToJson(restored->summary);
    body["lost_commits"] = restored->lost_commits < 0 ? json() : json(restored->lost_commits);
    body["raised_jobs"] = restored->raised_jobs;
    body["raised_by"] = restored->raised_by;
    body["kept_as"] = restored->aside;
    body["from"] = *from;
    body["term"] = restored->term.number == 0 ? json() : json(restored->term.number);
    out << body.dump(2) << "\n";
    return EX_OK;
  }
  out << ToText(restored->summary) << "\nput in place from " << *from << "\n";
  if (restored->lost_commits > 0)
    out << "lost: " << Count(restored->lost_commits, "commit that was", "commits that were") << " made after it\n";
  out << "the generations of " << Count(restored->raised_jobs, "unfinished job") << " went up by " << restored->raised_by << "\n";
  if (!restored->aside.empty()) out << "the database from before is kept as " << restored->aside << "\n";
  if (restored->term.number == 0)
    out << "it is the same coordinator as before: the machine that wrote the backup must not run one (--take-over is for that)\n";
  if (restored->term.number > 0)
    out << "it takes the cluster over with " << ToText(restored->term)
        << ": nodes that find it leave the one from before, which ends when it meets one of them\n";
  return EX_OK;
}

}  // namespace

std::optional<int> RunStoreCommand(int argc, const char* const* argv, std::ostream& out, std::ostream& error) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name != "check" && name != "backup" && name != "restore") return std::nullopt;
  Options options;
  std::string format = "text";
  CLI::App app("motley-coordinator: the store without a service");
  app.require_subcommand(1);
  auto add = [&](const char* command, const char* help) {
    CLI::App* sub = app.add_subcommand(command, help);
    sub->add_option("--config", options.config_file, "the coordinator's TOML file: its [state] folder is used");
    sub->add_option("--state-dir", options.folder, "folder of the durable state");
    sub->add_option("-o,--output", format, "text or json")->check(CLI::IsMember({"text", "json"}));
    return sub;
  };
  add("check", "is the store what was written to it? 0 yes, 65 no, 66 there is none, 69 a coordinator uses it");
  add("backup", "a sound copy as one file, also while a coordinator runs")
      ->add_option("--to", options.file, "the new file")
      ->required();
  CLI::App* restore = add("restore", "puts a backup in place; the database from before is kept beside it");
  CLI::Option_group* which = restore->add_option_group("which");
  which->add_option("--from", options.file, "a backup, or a folder of them, whose newest is taken");
  which->add_option("--take-over", options.take_over,
                    "the same, on another machine: this becomes the cluster's coordinator (docs/use/coordinator-lost.md)");
  which->require_option(1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e, out, error) == 0 ? 0 : EX_USAGE;
  }
  for (const std::string& path : {options.config_file, options.folder, options.file, options.take_over}) {
    const std::string why = WhyNoPath(path, Patterns::kTake);
    if (why.empty()) continue;
    error << "motley-coordinator " << name << ": " << Quoted(path) << " " << why << "\n";
    return EX_USAGE;
  }
  options.as_json = format == "json";
  if (options.folder.empty()) {
    Config config;
    if (!options.config_file.empty()) {
      if (absl::Status status = LoadConfigFile(options.config_file, &config); !status.ok()) {
        error << "motley-coordinator " << name << ": " << status.message() << "\n";
        return CodeOf(status);
      }
    }
    options.folder = config.state_folder;
  }
  if (name == "check") return Check(options, out, error);
  return name == "backup" ? BackUp(options, out, error) : Restore(options, out, error);
}

}  // namespace motley::coordinator
