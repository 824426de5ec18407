// Connections that one server holds at once, and who may have how many of them: nobody takes all, and admins find one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/held_socket.h"

namespace motley::coordinator {

// kOwn: root and the coordinator's own account.
enum class SeatClass { kAnybody, kAdmin, kOwn };

// Who is at the other end of a connection.
struct Guest {
  std::optional<uint32_t> uid;  // nothing: by TCP
  std::string name;             // of the account
  SeatClass seat_class = SeatClass::kAnybody;
  const BusyPeers* busy = nullptr;  // where its calls are counted: must outlive its connections
};

struct SeatLimits {
  size_t all = 0;
  size_t account = 0;  // of each account but the coordinator's own and root
  size_t tcp = 0;      // of all that come by TCP together
  // Of all: those that only admins take, and among them those that only root and the coordinator's own account take.
  size_t kept_for_admins = 0, kept_for_own = 0;
  std::string key;     // of the configuration, for people
  std::string socket;  // "unix:/run/..": the way of those on this machine who find none by TCP; empty: there is none

  // Everybody takes what is free.
  static SeatLimits Common(size_t all, std::string key);
  // By TCP half of all, for admins an eighth. `account`: 0 is an eighth.
  static SeatLimits Shared(size_t all, size_t account, std::string key, std::string socket = "");
};

// gRPC closes connections without telling, so what was handed over is looked at again when a bound is reached. Used on the
// acceptor's thread.
class Seats {
 public:
  explicit Seats(SeatLimits limits) : limits_(std::move(limits)) {}
  // Empty: there is a seat. Where none was left, connections without a call were closed for it, the oldest first: whoever holds
  // them can come again. By TCP a connection's own calls count, by Unix sockets, whose ends have no names, those of its account.
  // Else why there is none, and what helps.
  std::string MakeRoom(const Guest& guest);
  void Add(int fd, const Guest& guest) { taken_.push_back({HeldSocket::Of(fd), guest}); }

 private:
  struct Taken {
    HeldSocket socket;
    Guest guest;
  };
  // What the guest shares with its like: its account's, or TCP's.
  size_t ShareOf(const Guest& guest) const;
  size_t MostFor(const Guest& guest) const;
  size_t Held(const Guest& guest) const;
  // At most so many, for this guest: of its like, or of all who are not above it.
  void CloseIdle(size_t wanted, const Guest& guest, bool of_its_like);
  std::string WhyNoShare(const Guest& guest) const;

  const SeatLimits limits_;
  std::vector<Taken> taken_;  // the oldest first
};

}  // namespace motley::coordinator
