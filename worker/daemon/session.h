// The worker's session with the coordinator: dials, says hello, sends heartbeats and what waits in the outbox, hands what comes
// to the handler, and dials again with growing pauses when the stream breaks or the coordinator says nothing for a lease. The
// coordinator's refusals end it for good.
//
// One thread does everything, the handler's calls included; it takes its turns from stream_turn.
#pragma once

#include <grpcpp/security/credentials.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/session/session.h"
#include "worker/daemon/coordinator_stream.h"
#include "worker/daemon/outbox.h"
#include "worker/daemon/stream_turn.h"

namespace motley::worker {

struct SessionConfig {
  std::string coordinator;  // host:port or unix:PATH
  // Of each dial: what this node shows and whom it believes. Not set: nothing, in plaintext. FAILED_PRECONDITION ends the session
  // for good.
  std::function<absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>()> credentials;
  absl::Duration first_pause = absl::Milliseconds(200);  // between attempts; doubles
  absl::Duration longest_pause = absl::Seconds(2);
  absl::Duration connect_timeout = absl::Seconds(3);
  absl::Duration tls_timeout = absl::Seconds(10);      // the same by TLS: a coordinator that was restarted shakes many hands
  absl::Duration welcome_timeout = absl::Seconds(10);  // a coordinator that was restarted greets many workers
};

class Session {
 public:
  struct Handler {
    std::function<NodeDescription()> hello;  // of each attempt
    // After each welcome: how far the store has got, and whose numbers come from now on.
    std::function<void(const StoreMark&, const std::string& key_id)> on_connected;
    std::function<void(CoordinatorCommand)> on_command;
    // With each heartbeat: what else is to be sent now. Not set: nothing.
    std::function<std::optional<WorkerReport>()> on_heartbeat;
    std::function<void(const std::string& why)> on_disconnected;
    // Last call: the session has ended. ABORTED: refused now, although it was welcome before.
    std::function<void(absl::Status)> on_refused;
  };

  Session(SessionConfig config, Handler handler, const Clock& clock, Outbox& outbox);
  // Says goodbye: sends what waits and closes the stream in order, within a second.
  ~Session();

 private:
  void Run();
  // A channel of its own; UNAVAILABLE when nobody answers in time, CANCELLED when stopping.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial();
  // One stream from beginning to end; how it ended. `welcomed`: it was up.
  absl::Status RunStream(const std::shared_ptr<grpc::Channel>& channel, bool* welcomed);
  void Handle(const v1::CoordinatorMessage& message, StreamState& state);
  void SayWhatWasDropped();
  bool WaitBeforeNext(absl::Duration pause);  // false: stopping
  bool IsRefusal(const absl::Status& status) const;

  const SessionConfig config_;
  const Handler handler_;
  const Clock& clock_;
  Outbox& outbox_;
  absl::Notification stopping_;
  absl::Duration heartbeat_;  // session thread only, like the next one
  bool ever_welcomed_ = false;
  std::thread thread_;
};

}  // namespace motley::worker
