// How two ranks get a connection that is known to be theirs: sockets of our own, each proven by both ends before any use.
// Private to the engine. docs/inside/collectives.md
//
// Every rank listens on one port and publishes it with a secret among its epoch's keys. The lower rank of a pair calls the
// higher one and both prove that they know both secrets (meeting_words.h). Whoever connects and does not, or means a channel that
// is not waited for, is turned away and costs the meeting nothing. Two ranks that need several connections meet as often, once
// for each channel. A call that has not come about in kCallPatience is made again from a new socket, so that a healed network is
// used at once and not when TCP tries next.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/files.h"
#include "common/base/ids.h"
#include "worker/engine/transport/channel.h"

namespace motley::engine {

// Where a rank can be met. What is not known is not accepted: the secret is new with every meeting.
struct MeetingPoint {
  std::string address;  // numeric
  int port = 0;
  std::string secret;  // kSecretBytes random bytes
};
constexpr int kSecretBytes = 16;

// One connection to make.
struct MeetingPeer {
  int rank = 0;
  Channel channel = 0;
  DeviceId device;
  MeetingPoint point;
};

// Of one connection, for what this end sends and for what comes (meeting_words.h).
struct MessageKeys {
  std::string sending, receiving;
};

struct Met {
  // By rank and channel: connected, non-blocking, nothing left to read that belongs to the meeting.
  std::map<std::pair<int, Channel>, FileDescriptor> sockets;
  // Of each of them.
  std::map<std::pair<int, Channel>, MessageKeys> keys;
  int turned_away = 0;          // connections that were no peer's
  std::set<std::string> notes;  // to whom bytes may leave by another card than that of the own address, and why; for people
};

class Meeting {
 public:
  // Listens on a free port of `address`. UNAVAILABLE: it is not an address of this machine.
  static absl::StatusOr<Meeting> Open(int rank, const DeviceId& device, const std::string& address);
  const MeetingPoint& point() const { return point_; }

  // Blocks until every one of `peers` is connected, at most for `limit`. UNAVAILABLE (Fault::kPeer): who was not met, and what
  // was seen of them. CANCELLED: `stopped` became true (asked several times a second).
  absl::StatusOr<Met> Meet(const std::vector<MeetingPeer>& peers, absl::Duration limit, const std::function<bool()>& stopped);

 private:
  Meeting(int rank, DeviceId device, FileDescriptor listener, FileDescriptor card_listener, MeetingPoint point)
      : rank_(rank),
        device_(std::move(device)),
        listener_(std::move(listener)),
        card_listener_(std::move(card_listener)),
        point_(std::move(point)) {}

  int rank_;
  DeviceId device_;
  FileDescriptor listener_,
      card_listener_;  // the second for what comes by the address's card (common/base/data_way.h); may be none
  MeetingPoint point_;
};

}  // namespace motley::engine
