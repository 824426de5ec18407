#include "coordinator/client/events_command.h"

#include <CLI/CLI.hpp>

#include "coordinator/client/format.h"
#include "coordinator/client/json.h"

namespace motley::client {
namespace {

Exit Events(Context& context, const std::string& id, bool follow) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  Json events = Json::array();
  Connection::Stream<v1::Event> stream;
  stream.open = [&](Connection::Stub& stub, grpc::ClientContext* call, int64_t cursor) {
    v1::ListEventsRequest request;
    request.set_job_id(id);
    request.set_after_sequence(cursor);
    request.set_follow(follow);
    return stub.ListEvents(call, request);
  };
  stream.cursor_of = [](const v1::Event& event) { return event.sequence(); };
  stream.use = [&](const v1::Event& event) {
    if (!context.json) {
      context.out << EventLine(event) << std::endl;
    } else if (follow) {
      PrintLine(context.out, ToJson(event));
    } else {
      events.push_back(ToJson(event));
    }
    return true;
  };
  stream.say = [&](const std::string& text) { context.err << "motley: " << text << std::endl; };
  const absl::Status status = connection->Follow(std::move(stream));
  if (!status.ok()) return FromServer(status);
  if (context.json && !follow) PrintDocument(context.out, Json{{"events", events}});
  return {};
}

}  // namespace

Action AddEvents(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto follow = std::make_shared<bool>(false);
  app.add_option("JOB", *id, "only this job's events");
  app.add_flag("-f,--follow", *follow, "keep printing new events");
  return [id, follow](Context& context) { return Events(context, *id, *follow); };
}

}  // namespace motley::client
