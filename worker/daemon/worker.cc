#include "worker/daemon/worker.h"

#include <unistd.h>

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status_macros.h"
#include "common/version.h"
#include "worker/daemon/storage_check.h"

namespace motley::worker {
namespace {

constexpr absl::Duration kTokenPatience = absl::Seconds(5);

int64_t NewIncarnation() {
  std::random_device random;
  return static_cast<int64_t>((static_cast<uint64_t>(random()) << 31) ^ random());
}

}  // namespace

StoreMark Remembered(const StoreMark& known, const StoreMark& told) {
  if (told.store_id.empty()) return known;
  return told.store_id == known.store_id && told.commits < known.commits ? known : told;
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(const WorkerConfig& config, const Clock& clock, Events events) {
  MOTLEY_ASSIGN_OR_RETURN(std::vector<DeviceDescription> devices, DescribeDevices(config));
  auto worker = std::unique_ptr<Worker>(new Worker(config, clock, std::move(events)));
  Worker* self = worker.get();
  self->metrics_ = std::make_unique<WorkerMetrics>(self->registry_, config.name, devices);
  if (!config.metrics.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(self->metrics_server_, MetricsServer::Start(config.metrics, self->registry_));
  }
  SupervisorConfig supervisor;
  supervisor.rank_binary = config.rank_binary;
  for (const DeviceDescription& device : devices) supervisor.devices.push_back(device.id);
  self->supervisor_ = std::make_unique<Supervisor>(std::move(supervisor), clock, self->outbox_, *self->metrics_);
  self->description_ = {NodeName(config.name), kVersion, NewIncarnation(), config.data_address, std::move(devices), {}, {}, 0};
  self->checker_ = std::thread([self] { self->CheckLoop(); });
  self->StartSession();
  return worker;
}

void Worker::StartSession() {
  SessionConfig session;
  session.coordinator = config_.coordinator;
  Session::Handler handler;
  handler.hello = [this] { return Describe(); };
  handler.on_command = [this](CoordinatorCommand command) { OnCommand(std::move(command)); };
  handler.on_connected = [this](const StoreMark& mark) {
    LogInfo(absl::StrCat("in session with the coordinator at ", config_.coordinator));
    OnMark(mark);
    metrics_->SetConnected(true);
    supervisor_->OnConnected();
    if (events_.on_connected) events_.on_connected();
  };
  handler.on_disconnected = [this](const std::string&) { metrics_->SetConnected(false); };
  handler.on_refused = [this](absl::Status status) {
    metrics_->SetConnected(false);
    if (events_.on_refused) events_.on_refused(std::move(status));
  };
  session_ = std::make_unique<Session>(std::move(session), std::move(handler), clock_, outbox_);
}

Worker::~Worker() {
  session_.reset();
  supervisor_.reset();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (checker_.joinable()) checker_.join();
  absl::MutexLock lock(&mutex_);
  for (const auto& [job, path] : tokens_) unlink(path.c_str());
}

NodeDescription Worker::Describe() const {
  NodeDescription node = description_;
  node.newest_epochs = supervisor_->newest_epochs();
  node.store_mark = mark_;
  return node;
}

void Worker::OnMark(const StoreMark& mark) { mark_ = Remembered(mark_, mark); }

void Worker::OnCommand(CoordinatorCommand command) {
  struct Visitor {
    Worker& worker;
    void operator()(StorageCheckCommand& check) const {
      absl::MutexLock lock(&worker.mutex_);
      worker.checks_.push_back(std::move(check));
    }
    void operator()(ReachCheckCommand&) const {}
    void operator()(ProfileCommand& profile) const {
      if (!profile.ranks.empty()) worker.RemoveToken(profile.job);
      worker.supervisor_->Profile(std::move(profile));
    }
    void operator()(StartCommand& start) const {
      if (!start.ranks.empty()) worker.RemoveToken(start.ranks[0].job);
      worker.supervisor_->Start(std::move(start));
    }
    void operator()(StopCommand& stop) const {
      worker.DropChecks(stop);
      worker.RemoveToken(stop.job);
      worker.supervisor_->Stop(std::move(stop));
    }
    void operator()(KvValueCommand& value) const { worker.supervisor_->Deliver(std::move(value)); }
    void operator()(PublishAnswerCommand& answer) const { worker.supervisor_->Deliver(std::move(answer)); }
    void operator()(HeartbeatAnswer& answer) const { worker.OnMark(answer.store_mark); }
  };
  std::visit(Visitor{*this}, command);
}

void Worker::CheckLoop() {
  while (true) {
    StorageCheckCommand check;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(+[](Worker* worker) ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return worker->stopping_ || !worker->checks_.empty();
      }, this));
      if (stopping_) return;
      check = std::move(checks_.front());
      checks_.pop_front();
      if (check.write_token && !check.token.empty()) tokens_[check.job] = TokenPath(check);
    }
    outbox_.Push(CheckStorage(check, clock_, kTokenPatience));
    absl::MutexLock lock(&mutex_);
    // The job ended while the file was being written.
    if (check.write_token && !check.token.empty() && !tokens_.contains(check.job)) unlink(TokenPath(check).c_str());
  }
}

void Worker::DropChecks(const StopCommand& stop) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(checks_, [&](const StorageCheckCommand& check) { return check.job == stop.job && check.epoch <= stop.epoch; });
}

void Worker::RemoveToken(const JobId& job) {
  absl::MutexLock lock(&mutex_);
  auto token = tokens_.extract(job);
  if (!token.empty()) unlink(token.mapped().c_str());
}

}  // namespace motley::worker
