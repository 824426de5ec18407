#include "coordinator/watchdog.h"

#include <grpcpp/grpcpp.h>
#include <systemd/sd-daemon.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/rpc/channel.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"

namespace motley::coordinator {

absl::Status AskHealth(const std::string& address, absl::Duration patience) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(patience));
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status = grpc::health::v1::Health::NewStub(OpenChannel(address))->Check(&context, {}, &response);
  if (!status.ok()) return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  if (response.status() == grpc::health::v1::HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::UnavailableError("it does not serve");
}

absl::Duration Watchdog::IntervalOfSystemd() {
  uint64_t microseconds = 0;
  return sd_watchdog_enabled(/*unset_environment=*/0, &microseconds) > 0 ? absl::Microseconds(microseconds) / 3
                                                                         : absl::ZeroDuration();
}

Watchdog::Watchdog(std::string address, absl::Duration interval, std::function<void()> alive)
    : address_(std::move(address)), interval_(interval), alive_(std::move(alive)), thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Watchdog::Run() {
  bool complained = false;
  while (true) {
    const absl::Status status = AskHealth(address_, interval_);
    if (status.ok()) {
      alive_();
    } else if (!complained) {
      LogWarning(absl::StrCat("no answer from ", address_, " (", std::string(status.message()),
                              "); the service manager is told nothing until there is one"));
    }
    complained = !status.ok();
    absl::MutexLock lock(&mutex_);
    if (changed_.WaitFor(mutex_, interval_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; })) return;
  }
}

}  // namespace motley::coordinator
