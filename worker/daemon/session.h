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
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/session/session.h"
#include "worker/daemon/coordinator_stream.h"
#include "worker/daemon/dial_look.h"
#include "worker/daemon/dial_targets.h"
#include "worker/daemon/known_term.h"
#include "worker/daemon/outbox.h"
#include "worker/daemon/stream_turn.h"

namespace motley::worker {

struct SessionConfig {
  std::vector<std::string> coordinators;  // host:port or unix:PATH; the cluster's coordinator is at one of them
  // Of each dial: what this node shows and whom it believes; what the other end shows is put into `shown`. Not set: nothing, in
  // plaintext. FAILED_PRECONDITION ends the session for good.
  using Credentials =
      std::function<absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>(std::shared_ptr<ShownCertificate> shown)>;
  Credentials credentials;
  // Whether who let this node in is to be obeyed, by what it showed; with credentials alone. Any error: another one is tried.
  std::function<absl::Status(const Certificate& shown)> follow;
  std::string instead;                                   // what may help where nobody answers; empty: nothing more is known
  absl::Duration first_pause = absl::Milliseconds(200);  // between attempts; doubles
  absl::Duration longest_pause = absl::Seconds(2);
  absl::Duration connect_timeout = absl::Seconds(3);
  absl::Duration tls_timeout = absl::Seconds(10);      // the same by TLS: a coordinator that was restarted shakes many hands
  absl::Duration welcome_timeout = absl::Seconds(10);  // a coordinator that was restarted greets many workers
};

// Another channel to where a session is, of its own: what goes there delays no heartbeat. Errors of SessionConfig::credentials.
using ChannelOpener = std::function<absl::StatusOr<std::shared_ptr<grpc::Channel>>()>;

class Session {
 public:
  struct Handler {
    std::function<NodeDescription()> hello;  // of each attempt
    // After each welcome: how far the store has got, and whose numbers come from now on.
    std::function<void(const StoreMark&, const std::string& key_id, const std::string& address, ChannelOpener beside)>
        on_connected;
    std::function<void(CoordinatorCommand)> on_command;
    // Said with each heartbeat: HeartbeatReport::doing. Not set: nothing.
    std::function<std::string()> doing;
    // With each heartbeat: what else is to be sent now. Not set: nothing.
    std::function<std::optional<WorkerReport>()> on_heartbeat;
    std::function<void(const std::string& why)> on_disconnected;
    // Last call: the session has ended. The message says who refused whom, and why. ABORTED: refused now, although it was welcome
    // before.
    std::function<void(absl::Status)> on_refused;
  };

  Session(SessionConfig config, Handler handler, const Clock& clock, Outbox& outbox);
  // Says goodbye: sends what waits and closes the stream in order, within a second.
  ~Session();

 private:
  void Run();
  // A channel to one of the coordinators.
  struct Way {
    std::string address;  // as it is configured
    std::string target;   // what that stands for, or a part of it (dial_targets.h)
    std::shared_ptr<ShownCertificate> shown;
    std::shared_ptr<grpc::Channel> channel;
  };
  // Fills not_known_, too.
  absl::StatusOr<std::vector<Way>> OpenWays();
  struct Answers {
    Way* best = nullptr;     // of those that answer
    bool all_known = false;  // each answers, or has failed
  };
  static Answers LookAt(std::vector<Way>& ways);
  // All are dialed at once: a machine that is gone does not say so. Of those that answer the one of the highest term, else the
  // first one after who was tried last; UNAVAILABLE when nobody answers in time, CANCELLED when stopping.
  absl::StatusOr<Way> Dial();
  // One stream from beginning to end; how it ended. `welcomed`: it was up.
  absl::Status RunStream(const Way& way, bool* welcomed);
  // Not OK: who said welcome is not to be followed.
  absl::Status Handle(const v1::CoordinatorMessage& message, const Way& way, StreamState& state);
  void SayWhatWasDropped();
  // Of a look that is done.
  std::string WhyNobody(const DialLook& look) const;
  std::string Everywhere() const;
  // Not what was said last.
  void SayOnce(const std::string& where, const std::string& reason);
  bool WaitBeforeNext(absl::Duration pause);  // false: stopping
  bool IsRefusal(const absl::Status& status) const;

  const SessionConfig config_;
  const Handler handler_;
  const Clock& clock_;
  Outbox& outbox_;
  absl::Notification stopping_;
  absl::Duration heartbeat_;  // session thread only, like the next one
  bool ever_welcomed_ = false;
  size_t first_ = 0;                    // of the coordinators: whom to prefer at the next dial
  std::vector<std::string> not_known_;  // why names of them stand for nothing, at the newest dial
  std::string last_reason_;
  std::thread thread_;
};

}  // namespace motley::worker
