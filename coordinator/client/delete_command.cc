#include "coordinator/client/delete_command.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/checkpoint/adopt_file.h"
#include "coordinator/client/json.h"

namespace motley::client {
namespace {

// Of the job that has the id; empty: nobody has it. So that a second try deletes nobody else's files.
absl::StatusOr<std::string> UidOf(Connection& connection, const std::string& id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  const auto response = connection.Call(&Connection::Stub::GetJob, request);
  if (absl::IsNotFound(response.status())) return "";
  return response.ok() ? absl::StatusOr<std::string>(response->job().uid()) : response.status();
}

Exit Delete(Context& context, const std::string& id, bool files, std::string uid) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::DeleteJobRequest request;
  request.set_job_id(id);
  request.set_files(files);
  if (files && uid.empty()) {
    const auto found = UidOf(*connection, id);
    if (!found.ok()) return FromServer(found.status());
    uid = *found;
  }
  request.set_job_uid(uid);
  auto response = connection->Call(&Connection::Stub::DeleteJob, request);
  // The answer to the first attempt was lost on its way.
  if (absl::IsNotFound(response.status()) && connection->attempts() > 1) response = v1::DeleteJobResponse();
  if (!response.ok()) return FromServer(response.status());
  const std::string& folder = response->checkpoint_folder();
  if (context.json) {
    const std::vector<std::string> later(response->later().begin(), response->later().end());
    PrintDocument(context.out, Json{{"id", id}, {"checkpoint_folder", folder}, {"adopt", response->adopt()}, {"later", later}});
    return {};
  }
  context.out << "job " << id << " is deleted" << (files ? ", with what the nodes' disks have of it" : "") << "\n";
  if (!response->later().empty()) {
    context.out << "not here now, and told when they are: " << absl::StrJoin(response->later(), ", ") << "\n";
  }
  if (!folder.empty()) {
    context.out << "its checkpoints stay in " << folder << ", and 'motley export --checkpoint' exports them\n";
    if (!response->adopt().empty())
      context.out << "a new job of this id is refused there, but goes on from them after: "
                  << AdoptLine(response->adopt(), folder) << "\n";
  }
  return {};
}

}  // namespace

Action AddDelete(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  app.add_option("JOB", *id, "the job's id; it has ended")->required();
  auto files = std::make_shared<bool>(false);
  app.add_flag("--files", *files,
               "delete its checkpoints on the nodes' own disks, too; also of a job that was deleted before (motley files)");
  auto uid = std::make_shared<std::string>();
  app.add_option("--uid", *uid, "with --files: what this one left, as motley files says it, whoever has the id now")
      ->type_name("UID");
  return [id, files, uid](Context& context) {
    if (!uid->empty() && !*files) return Exit{kUsage, "--uid goes with --files"};
    return Delete(context, *id, *files, *uid);
  };
}

}  // namespace motley::client
