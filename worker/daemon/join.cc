#include "worker/daemon/join.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"
#include "common/tls/certificate.h"
#include "common/tls/certificate_authority.h"
#include "proto/motley/v1/worker.grpc.pb.h"
#include "worker/daemon/dial_look.h"
#include "worker/daemon/dial_targets.h"
#include "worker/daemon/known_term.h"
#include "worker/daemon/numeric_address.h"

namespace motley::worker {
namespace {

std::chrono::system_clock::time_point In(absl::Duration time) {
  return std::chrono::system_clock::now() + absl::ToChronoMilliseconds(time);
}

std::shared_ptr<grpc::Channel> OpenTo(const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments = DirectArguments();
  ExpectCoordinator(arguments);
  return OpenChannel(address, arguments, credentials);
}

struct Cluster {
  Certificate authority, coordinator;
  std::string target;  // where it answered (dial_targets.h)
};

std::string DateAndTime(absl::Time time) { return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone()); }

// What the server's certificates say against the token. Called on gRPC's threads.
class Judge {
 public:
  explicit Judge(const JoinToken& token) : token_(token) {}
  absl::Status operator()(const std::vector<Certificate>& shown) {
    absl::MutexLock lock(&mutex_);
    const Certificate& authority = shown.back();
    const bool is_coordinator = shown.front().IsSignedBy(authority) && TermOf(shown.front()).ok();
    if (!authority.IsAuthority() || !IsOf(token_, authority) || !is_coordinator) {
      verdict_ = absl::FailedPreconditionError(
          "who answers there is not of the cluster that the token is for; the token is another cluster's or older than its "
          "authority, or somebody stands between");
      return *verdict_;
    }
    cluster_ = {authority, shown.front()};
    verdict_ = absl::OkStatus();
    return absl::OkStatus();
  }
  std::optional<absl::Status> verdict() const {
    absl::MutexLock lock(&mutex_);
    return verdict_;
  }
  Cluster cluster() const {
    absl::MutexLock lock(&mutex_);
    return *cluster_;
  }

 private:
  const JoinToken token_;
  mutable absl::Mutex mutex_;
  std::optional<absl::Status> verdict_ ABSL_GUARDED_BY(mutex_);
  std::optional<Cluster> cluster_ ABSL_GUARDED_BY(mutex_);
};

// Of one that did not answer by TLS.
std::string WhyNoTls(const std::string& address, const std::vector<std::string>& targets) {
  const absl::Notification never;
  const SystemClock clock;
  const std::vector<int> errors = TryToConnect(targets, clock, kLookPatience, never);
  std::vector<std::string> whys = Troubles(targets, errors, kLookPatience, address);
  if (whys.size() < targets.size())
    whys.push_back("something answers there, but not by TLS: is it the coordinator's workers.listen?");
  return absl::StrJoin(whys, "; ");
}

// All that an address stands for; its own words where it stands for nothing.
absl::StatusOr<std::vector<std::string>> TargetsOf(const std::string& address) {
  const absl::Notification never;
  const SystemClock clock;
  DialTargets found = LookUp({address}, clock, kNamesPatience, never)[0];
  if (found.targets.empty()) return absl::UnavailableError(found.trouble);
  return std::move(found.targets);
}

// All targets are tried at once: a name may stand for one that is gone.
absl::StatusOr<Cluster> LearnCluster(const JoinRequest& request, absl::Duration patience) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> targets, TargetsOf(request.coordinator));
  std::vector<std::shared_ptr<Judge>> judges;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (const std::string& target : targets) {
    const auto& judge = judges.emplace_back(std::make_shared<Judge>(request.token));
    channels.push_back(OpenTo(target, TlsCredentialsJudging([judge](const auto& shown) { return (*judge)(shown); })));
  }
  const absl::Time end = absl::Now() + patience;
  do {
    for (size_t i = 0; i < targets.size(); ++i) {
      (void)channels[i]->WaitForConnected(In(absl::Milliseconds(100) / static_cast<int>(targets.size())));
      const std::optional<absl::Status> verdict = judges[i]->verdict();
      if (!verdict) continue;
      MOTLEY_RETURN_IF_ERROR(*verdict);
      Cluster cluster = judges[i]->cluster();
      MOTLEY_RETURN_IF_ERROR(CheckClock(cluster.coordinator, cluster.authority, absl::Now()));
      cluster.target = targets[i];
      return cluster;
    }
  } while (absl::Now() < end);
  return absl::UnavailableError(absl::StrCat(request.coordinator, " does not answer by TLS within ",
                                             absl::FormatDuration(patience), ": ", WhyNoTls(request.coordinator, targets)));
}

absl::StatusOr<v1::JoinResponse> Ask(const Cluster& cluster, const JoinRequest& request, const std::string& signing_request,
                                     absl::Duration patience) {
  const auto stub = v1::WorkerService::NewStub(OpenTo(cluster.target, TlsCredentialsBelieving(cluster.authority.ToPem())));
  v1::JoinRequest wanted;
  wanted.set_token(ToText(request.token));
  wanted.set_node(request.node.value());
  wanted.set_signing_request(signing_request);
  grpc::ClientContext context;
  context.set_deadline(In(patience));
  v1::JoinResponse answer;
  const grpc::Status status = stub->Join(&context, wanted, &answer);
  if (status.ok()) return answer;
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

absl::Status CheckClock(const Certificate& coordinator, const Certificate& authority, absl::Time now) {
  const absl::Time from = std::max(coordinator.not_before(), authority.not_before());
  const absl::Time until = std::min(coordinator.not_after(), authority.not_after());
  if (now >= from && now < until) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(now < from ? absl::StrCat("the coordinator's certificate is valid from ", DateAndTime(from), " on")
                              : absl::StrCat("the coordinator's certificate was valid until ", DateAndTime(until)),
                   ", and this machine's clock says ", DateAndTime(now), ": set the clock",
                   now < from ? "" : ", or the coordinator's, where that is the one that is wrong"));
}

absl::StatusOr<std::string> LocalEndOfWay(const std::string& address) {
  MOTLEY_RETURN_IF_ERROR(ParseHostPort("--coordinator", address, 1).status());
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> targets, TargetsOf(address));
  MOTLEY_ASSIGN_OR_RETURN(const HostPort there, ParseHostPort("--coordinator", targets.front(), 1));
  AddrInfo numbers;
  MOTLEY_RETURN_IF_ERROR(Resolve(there.host, there.port, numbers));
  const addrinfo* const found = numbers.list;
  const FileDescriptor socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage local = {};
  socklen_t length = sizeof(local);
  char text[INET6_ADDRSTRLEN] = "";
  if (socket.get() < 0 || connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
    return absl::UnavailableError(absl::StrCat("no way to ", there.host, " is known; give --data-address"));
  }
  if (std::string_view(text).find('%') == std::string_view::npos) return std::string(text);
  return absl::UnavailableError(
      absl::StrCat("the way to ", there.host, " begins at ", text, ", a link-local address; give --data-address"));
}

absl::StatusOr<absl::Time> JoinCluster(const JoinRequest& request, const IdentityFolder& folder, absl::Duration patience) {
  MOTLEY_ASSIGN_OR_RETURN(const Cluster cluster, LearnCluster(request, patience));
  MOTLEY_ASSIGN_OR_RETURN(const PrivateKey key, folder.LoadOrMakeKey());
  MOTLEY_ASSIGN_OR_RETURN(const std::string signing_request, key.SigningRequest());
  MOTLEY_ASSIGN_OR_RETURN(const v1::JoinResponse answer, Ask(cluster, request, signing_request, patience));
  MOTLEY_ASSIGN_OR_RETURN(std::string pem, key.ToPem());
  const NodeIdentity identity = {std::move(pem), answer.certificate(), answer.authorities()};
  MOTLEY_RETURN_IF_ERROR(CheckIdentity(identity, request.node, absl::Now()));
  MOTLEY_RETURN_IF_ERROR(folder.SaveAuthorities(identity.authorities));
  MOTLEY_RETURN_IF_ERROR(folder.SaveCertificate(identity.certificate));
  // Whom it follows from now on: a coordinator that this one has replaced does not know the node, and would send it away for
  // good.
  MOTLEY_ASSIGN_OR_RETURN(KnownTerm known, KnownTerm::Load(folder));
  MOTLEY_RETURN_IF_ERROR(known.Follow(cluster.coordinator));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<Certificate> own, Certificate::FromPem(identity.certificate));
  return own.front().not_after();
}

}  // namespace motley::worker
