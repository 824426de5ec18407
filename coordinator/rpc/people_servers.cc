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
  auto server = std::make_unique<Server>(loop_, core_, busy_, std::move(person));
  MOTLEY_ASSIGN_OR_RETURN(
      server->endpoint,
      StartEndpoint({Role::kPerson, {&server->motley, &server->health}, &server->refusing, kMaxRequestBytes, true}));
  return server;
}

absl::Status PeopleServers::Start() {
  MOTLEY_ASSIGN_OR_RETURN(unknown_, Make(Person()));
  return absl::OkStatus();
}

grpc::experimental::ExternalConnectionAcceptor* PeopleServers::For(int fd) {
  if (!core_.config.owners) return unknown_->endpoint.acceptor.get();
  const std::optional<uint32_t> uid = UidOf(fd);
  if (!uid) return unknown_->endpoint.acceptor.get();
  const Person& person = Ask(*uid);
  const absl::MutexLock lock(&mutex_);
  const std::pair<uint32_t, bool> key(*uid, person.admin);
  const auto found = servers_.find(key);
  if (found != servers_.end()) return found->second->endpoint.acceptor.get();
  if (servers_.size() >= kMostAccounts) {
    if (!std::exchange(said_full_, true))
      LogWarning(absl::StrCat(kMostAccounts, " accounts have connected; others may only look until the next start"));
    return unknown_->endpoint.acceptor.get();
  }
  absl::StatusOr<std::unique_ptr<Server>> server = Make(person);
  if (!server.ok()) {
    LogError(absl::StrCat("no server for account ", person.name, ": ", std::string(server.status().message())));
    return unknown_->endpoint.acceptor.get();
  }
  return servers_.emplace(key, *std::move(server)).first->second->endpoint.acceptor.get();
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
