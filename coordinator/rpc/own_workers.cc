#include "coordinator/rpc/own_workers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/accounts.h"
#include "common/base/clean_text.h"
#include "common/base/logging.h"
#include "coordinator/rpc/permission.h"
#include "coordinator/rpc/status.h"

namespace motley::coordinator {
namespace {

constexpr char kSession[] = "/motley.v1.WorkerService/Session";
// What the system said of an account.
constexpr absl::Duration kVerdictFor = absl::Seconds(30);
constexpr size_t kMostKnown = 4096;
// Between two lines of the log about one account.
constexpr absl::Duration kAuditEvery = absl::Minutes(1);
// Accounts that are told why; more are closed without a word.
constexpr size_t kMostToldWhy = 64;
// Long enough to read a refusal.
constexpr absl::Duration kLongestRefused = absl::Seconds(3);
constexpr int kMostRequestBytes = 64 << 10;

}  // namespace

bool MayBeWorker(uint32_t uid, const std::vector<std::string>& accounts) {
  if (IsOwn(uid)) return true;
  const auto is_it = [uid](const std::string& account) {
    const absl::StatusOr<uint32_t> named = UidOfAccount(account);
    return named.ok() && *named == uid;
  };
  return is_it(kWorkerAccount) || std::any_of(accounts.begin(), accounts.end(), is_it);
}

grpc::experimental::ExternalConnectionAcceptor* OwnWorkers::For(int fd) {
  const std::optional<uint32_t> uid = UidOf(fd);
  if (!uid) return nullptr;
  Known& known = Ask(*uid);
  if (known.is_worker) return &workers_;
  const Guest refused{.busy = &none_};
  if (!open_.MakeRoom(refused).empty()) return nullptr;
  grpc::experimental::ExternalConnectionAcceptor* const taker = Refuse(known);
  if (taker != nullptr) open_.Add(fd, refused);
  return taker;
}

OwnWorkers::Known& OwnWorkers::Ask(uint32_t uid) {
  const absl::Duration now = clock_.Now();
  if (known_.size() >= kMostKnown && !known_.contains(uid)) known_.clear();
  Known& known = known_[uid];
  if (known.person.uid && now - known.asked < kVerdictFor) return known;
  known.person = PersonOf(uid);
  known.is_worker = MayBeWorker(uid, accounts_);
  known.asked = now;
  return known;
}

absl::Status OwnWorkers::Refusal(const Person& person) const {
  const std::string name = CleanLine(person.name);
  std::vector<std::string> may = {"root", "the coordinator's own account", kWorkerAccount};
  for (const std::string& account : accounts_) may.push_back(CleanLine(account));
  return absl::PermissionDeniedError(absl::StrCat("you are ", name, " (", *person.uid, "), and workers by ", socket_,
                                                  " are processes of ", absl::StrJoin(may, ", "),
                                                  ". Start the worker as one of these (systemctl start motley-worker), or name "
                                                  "the account in the coordinator's configuration: "
                                                  "[workers] accounts = [\"",
                                                  name, "\"]"));
}

grpc::experimental::ExternalConnectionAcceptor* OwnWorkers::Refuse(Known& known) {
  const absl::Status refusal = Refusal(known.person);
  const absl::Duration now = clock_.Now();
  if (now - known.said >= kAuditEvery) {
    known.said = now;
    LogWarning(AuditLine(known.person, kSession, absl::StrCat("at ", socket_), refusal));
  }
  const auto found = refused_.find(*known.person.uid);
  if (found != refused_.end()) return found->second->endpoint.acceptor.get();
  if (refused_.size() >= kMostToldWhy) return nullptr;
  auto refused = std::make_unique<Refused>(ToGrpc(refusal));
  EndpointOptions options = {Role::kWorker, {}, &refused->refusing, kMostRequestBytes, false, nullptr};
  options.most_streams = 1;
  options.longest_connection = kLongestRefused;
  absl::StatusOr<Endpoint> endpoint = StartEndpoint(options);
  if (!endpoint.ok()) {
    LogError(absl::StrCat("no server to refuse account ", known.person.name, ": ", std::string(endpoint.status().message())));
    return nullptr;
  }
  refused->endpoint = *std::move(endpoint);
  return refused_.emplace(*known.person.uid, std::move(refused)).first->second->endpoint.acceptor.get();
}

void OwnWorkers::Shutdown(std::chrono::system_clock::time_point deadline) {
  for (const auto& [uid, refused] : refused_) refused->endpoint.server->Shutdown(deadline);
}

}  // namespace motley::coordinator
