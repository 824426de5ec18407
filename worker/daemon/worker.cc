#include "worker/daemon/worker.h"

#include <unistd.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status_macros.h"
#include "common/version.h"
#include "common/wire/device.h"
#include "worker/daemon/storage_check.h"

namespace motley::worker {
namespace {

constexpr absl::Duration kTokenPatience = absl::Seconds(5);

v1::Hello MakeHello(const WorkerConfig& config, const std::vector<DeviceDescription>& devices) {
  v1::Hello hello;
  hello.set_node(config.name);
  hello.set_version(kVersion);
  std::random_device random;
  hello.set_incarnation(static_cast<int64_t>((static_cast<uint64_t>(random()) << 31) ^ random()));
  hello.set_data_address(config.data_address);
  for (const DeviceDescription& device : devices) *hello.add_devices() = wire::ToProto(device);
  return hello;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(const WorkerConfig& config, const Clock& clock, Events events) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<DeviceDescription> devices, DescribeDevices(config));
  auto worker = std::unique_ptr<Worker>(new Worker(config, clock, std::move(events)));
  Worker* self = worker.get();
  self->metrics_ = std::make_unique<WorkerMetrics>(self->registry_, config.name, devices);
  if (!config.metrics.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(self->metrics_server_, MetricsServer::Start(config.metrics, self->registry_));
  }
  SupervisorConfig supervisor;
  supervisor.rank_binary = config.rank_binary;
  for (const DeviceDescription& device : devices) supervisor.device_ids.push_back(device.id.value());
  self->supervisor_ = std::make_unique<Supervisor>(std::move(supervisor), clock, self->outbox_, *self->metrics_);
  self->checker_ = std::thread([self] { self->CheckLoop(); });

  SessionConfig session;
  session.coordinator = config.coordinator;
  session.hello = MakeHello(config, devices);
  Session::Handler handler;
  handler.on_message = [self](const v1::CoordinatorMessage& message) { self->OnMessage(message); };
  handler.on_connected = [self] {
    LogInfo(absl::StrCat("in session with the coordinator at ", self->config_.coordinator));
    self->metrics_->SetConnected(true);
    self->supervisor_->OnConnected();
    if (self->events_.on_connected) self->events_.on_connected();
  };
  handler.on_disconnected = [self](const std::string&) { self->metrics_->SetConnected(false); };
  handler.on_refused = [self](absl::Status status) {
    self->metrics_->SetConnected(false);
    if (self->events_.on_refused) self->events_.on_refused(std::move(status));
  };
  self->session_ = std::make_unique<Session>(std::move(session), std::move(handler), self->outbox_);
  return worker;
}

Worker::~Worker() {
  session_.reset();
  supervisor_.reset();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (checker_.joinable()) checker_.join();
  for (const auto& [job, path] : tokens_) unlink(path.c_str());
}

void Worker::OnMessage(const v1::CoordinatorMessage& message) {
  switch (message.message_case()) {
    case v1::CoordinatorMessage::kStorageCheck: {
      std::lock_guard<std::mutex> lock(mutex_);
      checks_.push_back(message.storage_check());
      changed_.notify_all();
      return;
    }
    case v1::CoordinatorMessage::kProfileRequest:
      if (!message.profile_request().ranks().empty()) RemoveToken(message.profile_request().job_id());
      return supervisor_->Profile(message.profile_request());
    case v1::CoordinatorMessage::kStartEpoch:
      if (!message.start_epoch().ranks().empty()) RemoveToken(message.start_epoch().ranks(0).job_id());
      return supervisor_->Start(message.start_epoch());
    case v1::CoordinatorMessage::kStopEpoch:
      DropChecks(message.stop_epoch());
      RemoveToken(message.stop_epoch().job_id());
      return supervisor_->Stop(message.stop_epoch());
    case v1::CoordinatorMessage::kKvValue: return supervisor_->Deliver(message.kv_value());
    case v1::CoordinatorMessage::kPublishAnswer: return supervisor_->Deliver(message.publish_answer());
    case v1::CoordinatorMessage::kWelcome:
    case v1::CoordinatorMessage::MESSAGE_NOT_SET: return;
  }
}

void Worker::CheckLoop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !checks_.empty(); });
    if (stopping_) return;
    const v1::StorageCheck check = std::move(checks_.front());
    checks_.pop_front();
    if (check.write_token() && !check.token().empty()) tokens_[check.job_id()] = TokenPath(check.checkpoint_folder(), check.job_id());
    lock.unlock();
    v1::WorkerMessage message;
    *message.mutable_storage_check_result() = CheckStorage(check, kTokenPatience);
    outbox_.Push(std::move(message));
    lock.lock();
    // The job ended while the file was being written.
    if (check.write_token() && !check.token().empty() && !tokens_.contains(check.job_id())) {
      unlink(TokenPath(check.checkpoint_folder(), check.job_id()).c_str());
    }
  }
}

void Worker::DropChecks(const v1::StopEpoch& stop) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(checks_, [&](const v1::StorageCheck& c) { return c.job_id() == stop.job_id() && c.epoch() <= stop.epoch(); });
}

void Worker::RemoveToken(const std::string& job) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto token = tokens_.extract(job);
  if (!token.empty()) unlink(token.mapped().c_str());
}

}  // namespace motley::worker
