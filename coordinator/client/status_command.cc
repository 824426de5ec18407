#include "coordinator/client/status_command.h"

#include <CLI/CLI.hpp>

#include "common/clean_text.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"

namespace motley::client {
namespace {

void Print(const v1::Job& job, std::ostream& out) {
  out << "job         " << job.id() << (job.spec().name().empty() ? "" : " (" + CleanLine(job.spec().name()) + ")") << "\n";
  out << "state       " << FormatState(job.state()) << (job.reason().empty() ? "" : ": " + CleanLine(job.reason())) << "\n";
  out << "step        " << job.step() << " of " << job.spec().training().steps() << ", epoch " << job.epoch() << "\n";
  if (job.has_last_step()) out << "newest      " << StepLine(job.last_step(), job.spec().training().steps()) << "\n";
  out << "submitted   " << FormatTime(job.submitted_unix_ms()) << "\n";
  out << "started     " << FormatTime(job.started_unix_ms()) << "\n";
  out << "finished    " << FormatTime(job.finished_unix_ms()) << "\n";
  out << "checkpoint  " << (job.newest_checkpoint().empty() ? "none yet" : CleanLine(job.newest_checkpoint())) << "\n";
}

Exit Status(Context& context, const std::string& id) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::GetJobRequest request;
  request.set_job_id(id);
  auto response = connection->Call(&Connection::Stub::GetJob, request);
  if (!response.ok()) return FromServer(response.status());
  if (context.json) {
    PrintDocument(context.out, ToJson(response->job()));
  } else {
    Print(response->job(), context.out);
  }
  return {};
}

}  // namespace

Action AddStatus(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  app.add_option("JOB", *id, "the job's id")->required();
  return [id](Context& context) { return Status(context, *id); };
}

}  // namespace motley::client
