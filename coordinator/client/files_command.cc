#include "coordinator/client/files_command.h"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/result_stream.h"
#include "coordinator/client/table.h"

namespace motley::client {
namespace {

// The same thing on several nodes is one row.
struct FilesRow {
  std::vector<std::string> nodes, states;
  int64_t bytes = 0;
};
using RowKey = std::tuple<std::string, std::string, std::string>;  // job, what, uid or input

std::string JobsOf(const v1::FilesOnNode& file) {
  if (!file.listed().job_id().empty()) return CleanLine(file.listed().job_id());
  return file.jobs().empty() ? "-" : CleanLine(absl::StrJoin(file.jobs(), ", "));
}

std::string NoteOf(const v1::FilesOnNode& file) {
  if (file.listed().job_id().empty()) {
    return file.listed().coming() ? "comes" : file.jobs().empty() ? "read by no job: goes when room is wanted" : "input";
  }
  if (!file.jobs().empty()) return file.safe() ? "safe" : "";
  const std::string job = CleanLine(file.listed().job_id()), uid = CleanLine(file.listed().job_uid());
  return absl::StrCat("of no known job: motley delete ", job, " --files --uid ", uid, ", or motley submit FILE --id ", job,
                      " --adopt ", uid);
}

std::map<RowKey, FilesRow> RowsOf(const v1::FileListing& listing) {
  std::map<RowKey, FilesRow> rows;
  for (const v1::NodeFiles& node : listing.nodes()) {
    for (const v1::FilesOnNode& file : node.files()) {
      const v1::ListedFiles& listed = file.listed();
      FilesRow& row = rows[{JobsOf(file), CleanLine(listed.name()), absl::StrCat(listed.job_uid(), listed.input())}];
      row.nodes.push_back(node.node());
      row.bytes += listed.bytes();
      const std::string state = NoteOf(file);
      if (!state.empty() && (row.states.empty() || row.states.back() != state)) row.states.push_back(state);
    }
  }
  return rows;
}

void PrintListing(std::ostream& out, const Screen& screen, const v1::FileListing& listing) {
  Table table({"JOB", "WHAT", "BYTES", "NODES", "NOTE"});
  const std::map<RowKey, FilesRow> rows = RowsOf(listing);
  for (const auto& [key, row] : rows) {
    table.Add({std::get<0>(key), std::get<1>(key), FormatBytes(row.bytes), absl::StrJoin(row.nodes, ", "),
               absl::StrJoin(row.states, ", ")});
  }
  if (rows.empty()) {
    out << "nothing lies on the nodes' own disks\n";
  } else {
    table.Print(out, screen);
  }
  for (const v1::NodeFiles& node : listing.nodes()) {
    if (!node.error().empty()) out << "node " << node.node() << ": " << CleanLine(node.error()) << "\n";
    if (node.unlisted() > 0) out << "node " << node.node() << ": " << node.unlisted() << " more\n";
  }
  for (const v1::UnwantedOnNode& unwanted : listing.unwanted()) {
    out << "files of deleted job " << CleanLine(unwanted.job_id()) << " go from node " << unwanted.node()
        << " when it has said so\n";
  }
}

Json ListingJson(const v1::FileListing& listing) {
  Json nodes = Json::array(), unwanted = Json::array();
  for (const v1::NodeFiles& node : listing.nodes()) {
    Json files = Json::array();
    for (const v1::FilesOnNode& file : node.files()) {
      files.push_back({{"job_id", file.listed().job_id()},
                       {"job_uid", file.listed().job_uid()},
                       {"name", file.listed().name()},
                       {"input", file.listed().input()},
                       {"bytes", file.listed().bytes()},
                       {"coming", file.listed().coming()},
                       {"jobs", std::vector<std::string>(file.jobs().begin(), file.jobs().end())},
                       {"safe", file.safe()}});
    }
    nodes.push_back({{"node", node.node()},
                     {"error", node.error()},
                     {"free_bytes", node.free_bytes()},
                     {"unlisted", node.unlisted()},
                     {"files", std::move(files)}});
  }
  for (const v1::UnwantedOnNode& row : listing.unwanted()) unwanted.push_back({{"node", row.node()}, {"job_id", row.job_id()}});
  return {{"nodes", std::move(nodes)}, {"unwanted", std::move(unwanted)}};
}

Exit Files(Context& context, const std::string& job) {
  v1::ListFilesRequest request;
  request.set_job_id(job);
  const auto listing = AwaitResult(context, &Connection::Stub::ListFiles, request);
  if (!listing.ok()) return FromServer(listing.status());
  const v1::FileListing& found = listing->has_value() ? **listing : v1::FileListing::default_instance();
  if (context.json) {
    PrintDocument(context.out, ListingJson(found));
  } else {
    PrintListing(context.out, context.screen, found);
  }
  return {};
}

}  // namespace

Action AddFiles(CLI::App& app) {
  auto job = std::make_shared<std::string>();
  app.add_option("JOB", *job, "of this job alone, known or deleted");
  app.footer(
      "Checkpoints of jobs without a checkpoint.folder, their copies, and data that was sent. BYTES is what all these nodes have "
      "together.");
  return [job](Context& context) { return Files(context, *job); };
}

}  // namespace motley::client
