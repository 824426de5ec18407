#include "coordinator/client/events_command.h"

#include "coordinator/client/format.h"
#include "coordinator/client/tail.h"

namespace motley::client {
namespace {

Exit Events(Context& context, const std::string& id, const TailFlags& flags) {
  return Tail<v1::Event>(
      context, flags, "events",
      [&id](Connection::Stub& stub, grpc::ClientContext* call, int64_t cursor, bool follow) {
        v1::ListEventsRequest request;
        request.set_job_id(id);
        request.set_after_sequence(cursor);
        request.set_follow(follow);
        return stub.ListEvents(call, request);
      },
      [&context](const v1::Event& event) { PrintProse(context, EventLine(event)); });
}

}  // namespace

Action AddEvents(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto flags = std::make_shared<TailFlags>();
  app.add_option("JOB", *id, "only this job's events");
  AddTailFlags(app, flags.get());
  return [id, flags](Context& context) { return Events(context, *id, *flags); };
}

}  // namespace motley::client
