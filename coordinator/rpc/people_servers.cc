#include "coordinator/rpc/people_servers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {
namespace {

// Of a request from people: a plan of 1 MiB, 256 KiB for the rest of its job, and room for the words around them.
constexpr int kMaxRequestBytes = (1 << 20) + (256 << 10) + (16 << 10);
// Accounts with a server of their own; more may only look.
constexpr size_t kMostAccounts = 512;
// Name and groups of an account.
constexpr absl::Duration kKnownFor = absl::Seconds(30);

}  // namespace

absl::StatusOr<std::unique_ptr<PeopleServers::Server>> PeopleServers::Make(Person person) {
  auto server = std::make_unique<Server>(loop_, core_, carries_, std::move(person));
  MOTLEY_ASSIGN_OR_RETURN(
      server->endpoint,
      StartEndpoint({Role::kPerson, {&server->motley, &server->health}, &server->refusing, kMaxRequestBytes, true}));
  return server;
}

absl::Status PeopleServers::Start() {
  MOTLEY_ASSIGN_OR_RETURN(unknown_, Make(Person()));
  return absl::OkStatus();
}

Acceptor::Chosen PeopleServers::For(int fd) {
  const std::optional<uint32_t> uid = UidOf(fd);
  // Nobody asks a directory for who is who where that makes no difference.
  if (!uid || !core_.config.owners) {
    Guest guest{uid, uid ? absl::StrCat(*uid) : "", SeatClass::kAnybody, &unknown_->busy};
    if (uid && IsOwn(*uid)) guest.seat_class = SeatClass::kOwn;
    return {unknown_->endpoint.acceptor.get(), std::move(guest)};
  }
  const Person& person = Ask(*uid);
  Server& server = ServerOf(person);
  const SeatClass seat_class = IsOwn(*uid) ? SeatClass::kOwn : person.admin ? SeatClass::kAdmin : SeatClass::kAnybody;
  return {server.endpoint.acceptor.get(), {uid, person.name, seat_class, &server.busy}};
}

PeopleServers::Server& PeopleServers::ServerOf(const Person& person) {
  const absl::MutexLock lock(&mutex_);
  const std::pair<uint32_t, bool> key(*person.uid, person.admin);
  const auto found = servers_.find(key);
  if (found != servers_.end()) return *found->second;
  if (servers_.size() >= kMostAccounts) {
    if (!std::exchange(said_full_, true))
      LogWarning(absl::StrCat(kMostAccounts, " accounts have connected; others may only look until the next start"));
    return *unknown_;
  }
  absl::StatusOr<std::unique_ptr<Server>> server = Make(person);
  if (!server.ok()) {
    LogError(absl::StrCat("no server for account ", person.name, ": ", std::string(server.status().message())));
    return *unknown_;
  }
  return *servers_.emplace(key, *std::move(server)).first->second;
}

const Person& PeopleServers::Ask(uint32_t uid) {
  const absl::Duration now = clock_.Now();
  const auto found = known_.find(uid);
  if (found != known_.end() && now - found->second.asked < kKnownFor) return found->second.person;
  return known_.insert_or_assign(uid, Known{PersonOf(uid), now}).first->second.person;
}

void PeopleServers::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (unknown_ != nullptr) unknown_->endpoint.server->Shutdown(deadline);
  const absl::MutexLock lock(&mutex_);
  for (const auto& [key, server] : servers_) server->endpoint.server->Shutdown(deadline);
}

}  // namespace motley::coordinator
