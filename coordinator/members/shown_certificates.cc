#include "coordinator/members/shown_certificates.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kTurn = absl::Milliseconds(10);

class Look {
 public:
  explicit Look(const std::string& address) : seen_(std::make_shared<Seen>()) {
    grpc::ChannelArguments arguments = DirectArguments();
    ExpectCoordinator(arguments);
    channel_ = OpenChannel(address, arguments, TlsCredentialsJudging([seen = seen_](const std::vector<Certificate>& shown) {
                             absl::MutexLock lock(&seen->mutex);
                             seen->certificate = shown.front();
                             return absl::UnavailableError("it was only looked at");
                           }));
  }
  // Dials for a while: a channel gets on only while somebody waits for it.
  void Turn() const { (void)channel_->WaitForConnected(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(kTurn)); }
  std::optional<Certificate> certificate() const {
    absl::MutexLock lock(&seen_->mutex);
    return seen_->certificate;
  }
  bool IsOver() const {
    return certificate().has_value() || channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_TRANSIENT_FAILURE;
  }

 private:
  struct Seen {
    absl::Mutex mutex;
    std::optional<Certificate> certificate ABSL_GUARDED_BY(mutex);
  };
  std::shared_ptr<Seen> seen_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace

std::vector<ShownCertificate> LookAtCertificates(const std::vector<std::string>& addresses, absl::Duration patience) {
  std::vector<Look> looks;
  looks.reserve(addresses.size());
  for (const std::string& address : addresses) looks.emplace_back(address);
  const absl::Time end = absl::Now() + patience;
  for (bool all_over = false; !all_over && absl::Now() < end;) {
    all_over = true;
    for (const Look& look : looks) {
      if (look.IsOver()) continue;
      all_over = false;
      look.Turn();
    }
  }
  std::vector<ShownCertificate> shown;
  for (size_t i = 0; i < looks.size(); ++i) {
    if (std::optional<Certificate> certificate = looks[i].certificate()) shown.push_back({addresses[i], *std::move(certificate)});
  }
  return shown;
}

}  // namespace motley::coordinator
