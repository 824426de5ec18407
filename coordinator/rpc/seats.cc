#include "coordinator/rpc/seats.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::coordinator {
namespace {

// Of a full server's connections, closed together where they have no call: all were looked at for it.
constexpr size_t kShareAtOnce = 64;

size_t Part(size_t all, size_t divisor) { return std::max<size_t>(1, all / divisor); }

}  // namespace

SeatLimits SeatLimits::Common(size_t all, std::string key) { return {all, all, all, 0, 0, std::move(key), ""}; }

SeatLimits SeatLimits::Shared(size_t all, size_t account, std::string key, std::string socket) {
  return {all,
          account == 0 ? Part(all, 8) : std::min(account, all),
          Part(all, 2),
          all / 8,
          all / 16,
          std::move(key),
          std::move(socket)};
}

size_t Seats::ShareOf(const Guest& guest) const {
  if (guest.seat_class == SeatClass::kOwn) return limits_.all;
  return guest.uid ? limits_.account : limits_.tcp;
}

size_t Seats::MostFor(const Guest& guest) const {
  switch (guest.seat_class) {
    case SeatClass::kAnybody:
      return limits_.all - limits_.kept_for_admins;
    case SeatClass::kAdmin:
      return limits_.all - limits_.kept_for_own;
    case SeatClass::kOwn:
      break;
  }
  return limits_.all;
}

size_t Seats::Held(const Guest& guest) const {
  return static_cast<size_t>(
      std::count_if(taken_.begin(), taken_.end(), [&](const Taken& taken) { return taken.guest.uid == guest.uid; }));
}

void Seats::CloseIdle(size_t wanted, const Guest& guest, bool of_its_like) {
  std::erase_if(taken_, [&](const Taken& taken) {
    const bool may = of_its_like ? taken.guest.uid == guest.uid : taken.guest.seat_class <= guest.seat_class;
    if (wanted == 0 || !may) return false;
    if (taken.guest.busy->Has(taken.socket.peer) || !taken.socket.ShutDown()) return false;
    --wanted;
    return true;
  });
}

std::string Seats::MakeRoom(const Guest& guest) {
  const size_t share = ShareOf(guest), most = MostFor(guest);
  if (taken_.size() < most && Held(guest) < share) return "";
  std::erase_if(taken_, [](const Taken& taken) { return !taken.socket.IsOpen(); });
  if (share < most) {
    if (const size_t held = Held(guest); held >= share) CloseIdle(held - share + 1 + share / kShareAtOnce, guest, true);
    if (Held(guest) >= share) return WhyNoShare(guest);
  }
  if (taken_.size() >= most) CloseIdle(taken_.size() - most + 1 + most / kShareAtOnce, guest, false);
  if (taken_.size() < most) return "";
  return absl::StrCat("the coordinator has no free connection: it holds ", taken_.size(), " of ", limits_.all, " (", limits_.key,
                      ")", most < limits_.all ? ", and the others are kept for admins" : "",
                      "; try again when some are closed, or ask an admin");
}

std::string Seats::WhyNoShare(const Guest& guest) const {
  if (!guest.uid) {
    return absl::StrCat("the coordinator has no free connection by TCP: it holds ", Held(guest),
                        ", as many as may come so (a half of ", limits_.key, "); ",
                        limits_.socket.empty() ? "" : absl::StrCat("on its machine use --coordinator ", limits_.socket, ", "),
                        "close some, or ask an admin");
  }
  return absl::StrCat("the coordinator has no free connection for account ", guest.name, ": it holds ", Held(guest),
                      ", as many as one may have (limits.account_connections); close some, or ask an admin");
}

}  // namespace motley::coordinator
