// A stream whose messages say what is going on, the last one the result.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/client/command.h"
#include "coordinator/client/waiting.h"

namespace motley::client {

template <typename Update>
using ResultOf = std::decay_t<decltype(std::declval<Update>().result())>;

// Shows what is going on. Nothing: the deadline was first. Errors of Context::Connect and Connection::Follow.
template <typename Update, typename Request>
absl::StatusOr<std::optional<ResultOf<Update>>> AwaitResult(
    Context& context,
    std::unique_ptr<grpc::ClientReader<Update>> (Connection::Stub::*method)(grpc::ClientContext*, const Request&),
    const Request& request, absl::Time deadline = absl::InfiniteFuture()) {
  absl::StatusOr<Connection> connection = context.Connect();
  if (!connection.ok()) return connection.status();
  Waiting waiting(context);
  std::optional<ResultOf<Update>> result;
  Connection::Stream<Update> stream;
  stream.open = [&](Connection::Stub& stub, grpc::ClientContext* call, int64_t) { return (stub.*method)(call, request); };
  stream.cursor_of = [](const Update&) { return int64_t{0}; };
  stream.use = [&](const Update& update) {
    if (update.has_result()) {
      result = update.result();
    } else {
      waiting.Show(update.doing());
    }
    return !result.has_value();
  };
  stream.ends = [&result] { return result.has_value(); };
  stream.say = [&context](const std::string& text) { context.Say(text); };
  stream.deadline = deadline;
  if (absl::Status status = connection->Follow(std::move(stream)); !status.ok()) return status;
  return result;
}

}  // namespace motley::client
