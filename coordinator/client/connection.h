// The way to the coordinator: one channel, calls with deadlines, streams that go on after the coordinator was restarted.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/motley/v1/motley.grpc.pb.h"

namespace motley::client {

struct ConnectionOptions {
  absl::Duration connect = absl::Seconds(5);    // until the first connection, where nothing says that there can be none
  absl::Duration silence = absl::Seconds(1);    // after which the user is told what is waited for
  absl::Duration call = absl::Seconds(30);      // of one call, its retries included
  absl::Duration patience = absl::Seconds(60);  // of a stream, for the coordinator to come back
};

absl::Status FromGrpc(const grpc::Status& status);

// Not thread-safe.
class Connection {
 public:
  using Stub = v1::Motley::Stub;

  // UNAVAILABLE when nothing answers, at once where the host is not known or refuses; PERMISSION_DENIED for a socket that this
  // user may not open. Names the address and what to do. `say` is told of an answer that is slow to come.
  static absl::StatusOr<Connection> Open(
      const std::string& address, const ConnectionOptions& options,
      const std::function<void(const std::string&)>& say = [](const std::string&) {});

  // Every call of the API may be repeated, so one that a restart of the coordinator broke is.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    const absl::Time deadline = absl::Now() + options_.call;
    for (attempts_ = 1;; ++attempts_) {
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      context.set_deadline(absl::ToChronoTime(deadline));
      Response response;
      const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
      if (status.ok()) return response;
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE || absl::Now() >= deadline) return FromGrpc(status);
    }
  }

  // For streams both ways, whose owner tries again. As long as this lives.
  Stub& stub() { return *stub_; }

  // Of the newest call. With more than one, the coordinator may have done before what it was asked again.
  int attempts() const { return attempts_; }

  // Reads a stream and gives each message to `use`, until the stream ends well, `use` returns false, or an error that a new
  // attempt cannot mend. A broken stream is opened again, from the cursor of the last message, as soon as the coordinator
  // answers; UNAVAILABLE when it does not within the patience. `ends` tells whether a stream that ended well is really over.
  template <typename Message>
  struct Stream {
    std::function<std::unique_ptr<grpc::ClientReader<Message>>(Stub&, grpc::ClientContext*, int64_t cursor)> open;
    std::function<int64_t(const Message&)> cursor_of;
    std::function<bool(const Message&)> use;
    std::function<bool()> ends = [] { return true; };
    std::function<void(const std::string&)> say = [](const std::string&) {};  // told when the connection is lost
    absl::Time deadline = absl::InfiniteFuture();                             // it counts as the stream's end
    int64_t cursor = 0;
  };
  template <typename Message>
  absl::Status Follow(Stream<Message> stream) {
    for (;;) {
      // Fails at once where the coordinator is gone again: a call that waits for it would do so past the patience.
      grpc::ClientContext context;
      const absl::Time opened = absl::Now();
      if (stream.deadline != absl::InfiniteFuture()) context.set_deadline(absl::ToChronoTime(stream.deadline));
      auto reader = stream.open(*stub_, &context, stream.cursor);
      Message message;
      bool progressed = false;
      while (reader->Read(&message)) {
        progressed = true;
        stream.cursor = stream.cursor_of(message);
        if (!stream.use(message)) {
          context.TryCancel();
          reader->Finish();
          return absl::OkStatus();
        }
      }
      const grpc::Status status = reader->Finish();
      if (status.ok() && stream.ends()) return absl::OkStatus();
      const bool bounded = stream.deadline != absl::InfiniteFuture();
      if (bounded && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return absl::OkStatus();
      if (absl::Now() >= stream.deadline) return absl::OkStatus();
      if (!status.ok() && !MayReturn(status)) return FromGrpc(status);
      stream.say("the connection to the coordinator was lost; trying again");
      if (absl::Status back = AwaitCoordinator(progressed || HasLasted(opened)); !back.ok()) return back;
    }
  }

 private:
  Connection(std::string address, ConnectionOptions options, std::shared_ptr<grpc::Channel> channel);
  static bool MayReturn(const grpc::Status& status);
  static bool HasLasted(absl::Time opened);
  // Waits until the channel is connected, with a growing pause between attempts that bring nothing; the patience counts from the
  // last attempt that did (`answered`).
  absl::Status AwaitCoordinator(bool answered);

  std::string address_;
  ConnectionOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stub> stub_;
  absl::Duration pause_;
  absl::Time lost_ = absl::InfinitePast();
  int attempts_ = 0;
};

}  // namespace motley::client
