#include "coordinator/client/logs_command.h"

#include <CLI/CLI.hpp>

#include "common/clean_text.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"

namespace motley::client {
namespace {

Exit Logs(Context& context, const std::string& id, bool follow) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  Json lines = Json::array();
  Connection::Stream<v1::LogLine> stream;
  stream.open = [&](Connection::Stub& stub, grpc::ClientContext* call, int64_t cursor) {
    v1::TailLogsRequest request;
    request.set_job_id(id);
    request.set_after_sequence(cursor);
    request.set_follow(follow);
    return stub.TailLogs(call, request);
  };
  stream.cursor_of = [](const v1::LogLine& line) { return line.sequence(); };
  stream.use = [&](const v1::LogLine& line) {
    if (!context.json) {
      context.out << FormatTime(line.unix_ms()) << "  " << CleanLine(line.source()) << "  " << CleanLine(line.text())
                  << std::endl;
    } else if (follow) {
      PrintLine(context.out, ToJson(line));
    } else {
      lines.push_back(ToJson(line));
    }
    return true;
  };
  stream.say = [&](const std::string& text) { context.err << "motley: " << text << std::endl; };
  const absl::Status status = connection->Follow(std::move(stream));
  if (!status.ok()) return FromServer(status);
  if (context.json && !follow) PrintDocument(context.out, Json{{"lines", lines}});
  return {};
}

}  // namespace

Action AddLogs(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto follow = std::make_shared<bool>(false);
  app.add_option("JOB", *id, "the job's id")->required();
  app.add_flag("-f,--follow", *follow, "keep printing new lines");
  return [id, follow](Context& context) { return Logs(context, *id, *follow); };
}

}  // namespace motley::client
