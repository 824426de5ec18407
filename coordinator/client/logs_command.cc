#include "coordinator/client/logs_command.h"

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "coordinator/client/format.h"
#include "coordinator/client/tail.h"

namespace motley::client {
namespace {

Exit Logs(Context& context, const std::string& id, const TailFlags& flags) {
  return Tail<v1::LogLine>(
      context, flags, "lines",
      [&id](Connection::Stub& stub, grpc::ClientContext* call, int64_t cursor, bool follow) {
        v1::TailLogsRequest request;
        request.set_job_id(id);
        request.set_after_sequence(cursor);
        request.set_follow(follow);
        return stub.TailLogs(call, request);
      },
      [&context](const v1::LogLine& line) {
        PrintProse(context,
                   absl::StrCat(FormatTime(line.unix_ms()), "  ", CleanLine(line.source()), "  ", CleanLine(line.text())));
      },
      // What the coordinator adds are the job's events, which `motley events` shows.
      [](const v1::LogLine& line) { return line.source() != "coordinator"; });
}

}  // namespace

Action AddLogs(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto flags = std::make_shared<TailFlags>();
  app.add_option("JOB", *id, "the job's id")->required();
  AddTailFlags(app, flags.get());
  return [id, flags](Context& context) { return Logs(context, *id, *flags); };
}

}  // namespace motley::client
