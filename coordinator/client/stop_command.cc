#include "coordinator/client/stop_command.h"

#include <CLI/CLI.hpp>

#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

Exit Stop(Context& context, const std::string& id, bool wait) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::StopJobRequest request;
  request.set_job_id(id);
  auto response = connection->Call(&Connection::Stub::StopJob, request);
  if (!response.ok()) return FromServer(response.status());
  v1::Job job = response->job();
  if (wait && !HasEnded(job.state())) {
    const auto say = [&](const std::string& text) { context.Say(text); };
    auto ended = WatchToEnd(*connection, {id, [](const v1::JobUpdate&) {}, say});
    if (!ended.ok()) return FromServer(ended.status());
    job = *std::move(ended);
  }
  if (context.json) {
    PrintDocument(context.out, ToJson(job));
  } else if (HasEnded(job.state())) {
    context.out << "job " << job.id() << " " << FormatState(job.state()) << " at step " << job.step() << "\n";
  } else {
    context.out << "job " << job.id() << " saves a checkpoint and stops\n";
  }
  return {};
}

}  // namespace

Action AddStop(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto wait = std::make_shared<bool>(false);
  app.add_option("JOB", *id, "the job's id")->required();
  app.add_flag("--wait", *wait, "return when it has stopped");
  return [id, wait](Context& context) { return Stop(context, *id, *wait); };
}

}  // namespace motley::client
