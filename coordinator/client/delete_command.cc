#include "coordinator/client/delete_command.h"

#include <CLI/CLI.hpp>

#include "common/checkpoint/adopt_file.h"
#include "coordinator/client/json.h"

namespace motley::client {
namespace {

Exit Delete(Context& context, const std::string& id) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::DeleteJobRequest request;
  request.set_job_id(id);
  auto response = connection->Call(&Connection::Stub::DeleteJob, request);
  // The answer to the first attempt was lost on its way.
  if (absl::IsNotFound(response.status()) && connection->attempts() > 1) response = v1::DeleteJobResponse();
  if (!response.ok()) return FromServer(response.status());
  const std::string& folder = response->checkpoint_folder();
  if (context.json) {
    PrintDocument(context.out, Json{{"id", id}, {"checkpoint_folder", folder}, {"adopt", response->adopt()}});
    return {};
  }
  context.out << "job " << id << " is deleted\n";
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
  return [id](Context& context) { return Delete(context, *id); };
}

}  // namespace motley::client
