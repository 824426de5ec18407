// The worker's stream to the coordinator: dials, says hello, sends heartbeats and what waits in the outbox, hands what comes to
// the handler, and dials again with growing pauses when the stream breaks. The coordinator's refusals end it for good.
//
// Threads: one dials and reads, one writes while a stream is up. The handler is called from the first.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/motley/v1/worker.grpc.pb.h"
#include "worker/daemon/outbox.h"

namespace motley::worker {

struct SessionConfig {
  std::string coordinator;                              // host:port
  v1::Hello hello;                                      // incarnation included
  absl::Duration first_pause = absl::Milliseconds(200);  // between attempts; doubles
  absl::Duration longest_pause = absl::Seconds(5);
  absl::Duration connect_timeout = absl::Seconds(5);
};

class Session {
 public:
  struct Handler {
    std::function<void(const v1::CoordinatorMessage&)> on_message;  // everything but the welcome
    std::function<void()> on_connected;                             // after each welcome
    std::function<void(const std::string& why)> on_disconnected;
    std::function<void(absl::Status)> on_refused;                   // last call: the session has ended
  };

  Session(SessionConfig config, Handler handler, Outbox& outbox);
  // Says goodbye: closes the stream in order, waiting a second at most.
  ~Session();

 private:
  using Stream = grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>;
  void Run();
  // One stream from beginning to end; how it ended. `welcomed`: it was up.
  absl::Status RunStream(bool* welcomed);
  void WriteLoop(Stream& stream, absl::Duration heartbeat, grpc::ClientContext& context);
  bool WaitBeforeNext(absl::Duration pause);  // false: stopping
  bool IsRefusal(const absl::Status& status) const;

  const SessionConfig config_;
  const Handler handler_;
  Outbox& outbox_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool stream_over_ = false;                // the writer must end
  grpc::ClientContext* context_ = nullptr;  // of the stream that is up, to cancel it
  bool ever_welcomed_ = false;              // run thread only
  std::thread thread_;
};

}  // namespace motley::worker
