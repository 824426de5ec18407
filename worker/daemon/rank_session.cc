#include "worker/daemon/rank_session.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/memory_shortage.h"
#include "common/base/status_macros.h"
#include "common/wire/rank.h"
#include "worker/daemon/frame.h"

namespace motley::worker {
namespace {

RankEventKind KindOf(const absl::Status& status) {
  if (absl::IsAborted(status)) return RankEventKind::kNonFinite;
  if (FaultOf(status) == Fault::kPeer) return RankEventKind::kPeerLost;
  return RankEventKind::kFailed;
}

}  // namespace

RankSession::RankSession(int fd, EngineFactory factory, const Clock& clock, Options options)
    : fd_(fd), factory_(std::move(factory)), clock_(clock), options_(std::move(options)) {}

RankSession::~RankSession() { close(fd_); }

absl::Status RankSession::Serve() {
  std::thread reader([this] { ReadLoop(); });
  std::thread beat([this] { BeatLoop(); });
  while (true) {
    RankCommand command;
    {
      absl::MutexLock lock(&mutex_);
      busy_ = false;
      changed_.WaitFor(mutex_, absl::InfiniteDuration(),
                       [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !work_.empty(); });
      if (closed_) break;
      command = std::move(work_.front());
      work_.pop_front();
      busy_ = true;
    }
    if (const auto* start = std::get_if<StartCommand>(&command)) {
      RunTraining(start->ranks[0]);
    } else {
      RunProfile(std::get<ProfileCommand>(command));
    }
  }
  shutdown(fd_, SHUT_RDWR);
  reader.join();
  beat.join();
  absl::MutexLock lock(&mutex_);
  return end_;
}

void RankSession::ReadLoop() {
  FrameDecoder decoder;
  absl::Status end;
  std::string buffer(1 << 16, '\0');
  while (end.ok()) {
    const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    decoder.Append(std::string_view(buffer.data(), static_cast<size_t>(n)));
    while (end.ok()) {
      absl::StatusOr<std::optional<std::string>> frame = decoder.Next();
      if (frame.ok() && !frame->has_value()) break;
      end = frame.ok() ? Handle(**frame) : frame.status();
    }
  }
  bool orphaned = false;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    end_ = end;
    orphaned = busy_;
  }
  changed_.NotifyAll();
  if (orphaned && options_.on_orphaned) options_.on_orphaned();
}

absl::Status RankSession::Handle(const std::string& frame) {
  v1::ToRank proto;
  if (!proto.ParseFromString(frame)) return absl::DataLossError("the worker sent bytes that are not a message");
  MOTLEY_ASSIGN_OR_RETURN(RankCommand command, wire::FromProto(proto));
  if (const auto* trace = std::get_if<TraceCommand>(&command)) {
    SendTrace(trace->step);
    return absl::OkStatus();
  }
  absl::MutexLock lock(&mutex_);
  if (const auto* stop = std::get_if<StopCommand>(&command)) {
    stop_ = true;
    stop_save_ = stop->save;
    if (running_ != nullptr) running_->RequestStop(stop_save_);
  } else if (auto* value = std::get_if<KvValueCommand>(&command)) {
    values_[value->key] = std::move(value->value);
  } else if (auto* answer = std::get_if<PublishAnswerCommand>(&command)) {
    answers_[answer->question] = std::move(*answer);
  } else {
    stop_ = stop_save_ = false;
    work_.push_back(std::move(command));
  }
  changed_.NotifyAll();
  return absl::OkStatus();
}

void RankSession::SetAssignment(const RankAssignment& assignment) {
  absl::MutexLock lock(&mutex_);
  job_ = assignment.job;
  job_uid_ = assignment.job_uid;
  on_nodes_disks_ = IsOnNodesDisks(assignment.config.checkpoint);
  epoch_ = assignment.epoch;
  rank_ = assignment.rank;
  device_ = assignment.device.id;
  values_.clear();
  answers_.clear();
  steps_.Clear();
  awaited_steps_.clear();
}

void RankSession::SendTrace(int64_t step) {
  TraceReport report;
  {
    absl::MutexLock lock(&mutex_);
    const absl::StatusOr<const engine::StepResult*> kept = steps_.Find(step);
    if (kept.ok() && *kept == nullptr) {
      awaited_steps_.insert(step);
      return;
    }
    report = {job_, epoch_, rank_, step, kept.ok() ? "" : std::string(kept.status().message()), 0, {}};
    if (kept.ok()) {
      report.step_seconds = (*kept)->step_seconds;
      report.spans = (*kept)->spans;
    }
  }
  (void)Send(WorkerReport(std::move(report)));
}

std::unique_ptr<StepRecorder> RankSession::MakeRecords(const RankAssignment& assignment) {
  StepRecorder::Options options;
  options.confirm = [this, step = assignment.start_step](const std::string& purpose) {
    return ConfirmEpochIsNewest(step, purpose);
  };
  options.log = [this](const std::string& line) { OnLog(line); };
  return StepRecorder::CreateIfAsked(assignment, clock_, std::move(options));
}

void RankSession::RunTraining(const RankAssignment& assignment) {
  SetAssignment(assignment);
  engine_ = factory_(*this);
  bool stopped = false;
  {
    absl::MutexLock lock(&mutex_);
    running_ = engine_.get();
    stopped = stop_;
  }
  records_ = MakeRecords(assignment);
  absl::StatusOr<engine::RunEnd> end = stopped ? engine::RunEnd::kStopped : engine_->Run(assignment);
  records_.reset();  // before the last word: after it the worker may end this process
  {
    absl::MutexLock lock(&mutex_);
    running_ = nullptr;
    stopped = stop_;
  }
  if (!end.ok()) engine_.reset();
  if (end.ok() || (stopped && absl::IsCancelled(end.status()))) {
    const bool all = end.ok() && *end == engine::RunEnd::kAllSteps;
    SendEvent(RankEventKind::kFinished, all ? "all steps done" : "stopped as asked");
  } else {
    SendFailure(end.status());
  }
}

absl::Status RankSession::Profile(const ProfileCommand& command, ProfileReport* report) {
  const RankAssignment& assignment = command.ranks[0];
  if (engine_ == nullptr) engine_ = factory_(*this);
  if (!command.compute_devices.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(ComputeProfile profile, engine_->ProfileCompute(assignment));
    report->compute.push_back(std::move(profile));
  }
  if (command.trial) {
    MOTLEY_ASSIGN_OR_RETURN(report->trial, engine_->TryMemory(assignment));
  }
  if (command.collectives) {
    MOTLEY_ASSIGN_OR_RETURN(CollectiveProfile profile, engine_->ProfileCollectives(assignment));
    if (assignment.rank == 0) report->collectives = std::move(profile);
  }
  return absl::OkStatus();
}

void RankSession::RunProfile(const ProfileCommand& command) {
  SetAssignment(command.ranks[0]);
  ProfileReport report{command.job, command.epoch, "", {}, {}, command.check_id};
  if (absl::Status status = Profile(command, &report); !status.ok()) {
    engine_.reset();
    report.error = CleanLine(std::string(status.message()));
    report.fault = FaultOf(status);
  }
  (void)Send(WorkerReport(std::move(report)));
}

absl::Status RankSession::Send(const RankMessage& message) {
  const v1::FromRank proto = wire::ToProto(message);
  const bool last_word = proto.has_profile_result() || (proto.has_event() && proto.event().kind() != v1::RankEvent::KIND_READY);
  if (last_word) {
    // The worker may close the socket at once: that is no orphan's end.
    absl::MutexLock lock(&mutex_);
    busy_ = false;
  }
  const std::string frame = EncodeFrame(proto.SerializeAsString());
  absl::MutexLock lock(&write_mutex_);
  return WriteAll(fd_, frame);
}

// A closed socket ends Serve by itself.
void RankSession::SendEvent(RankEventKind kind, const std::string& text) {
  (void)Send(WorkerReport(RankReport{job_, epoch_, rank_, device_, kind, CleanLine(text)}));
}

void RankSession::SendFailure(const absl::Status& status) {
  RankReport report{job_, epoch_, rank_, device_, KindOf(status), CleanLine(std::string(status.message())), FaultOf(status)};
  report.damaged_checkpoint = DamagedCheckpointOf(status);
  if (on_nodes_disks_) report.damaged_checkpoint = std::filesystem::path(report.damaged_checkpoint).filename().string();
  report.shortage = MemoryShortageOf(status);
  if (report.shortage) report.shortage->where = CleanLine(report.shortage->where);
  (void)Send(WorkerReport(std::move(report)));
}

absl::Status RankSession::KvSet(const std::string& key, const std::string& value) {
  return Send(WorkerReport(KvSetReport{job_, epoch_, key, value}));
}

absl::StatusOr<std::string> RankSession::KvGet(const std::string& key, absl::Duration timeout) {
  {
    absl::MutexLock lock(&mutex_);
    if (auto it = values_.find(key); it != values_.end()) return it->second;
  }
  MOTLEY_RETURN_IF_ERROR(Send(WorkerReport(KvGetReport{job_, epoch_, key, rank_})));
  absl::MutexLock lock(&mutex_);
  ++waiting_;
  changed_.WaitFor(mutex_, timeout,
                   [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || stop_ || values_.contains(key); });
  --waiting_;
  if (auto it = values_.find(key); it != values_.end()) return it->second;
  if (stop_) return absl::CancelledError(absl::StrCat("told to stop while waiting for '", key, "'"));
  const std::string why = closed_ ? "the worker closed the rank's socket"
                                  : absl::StrCat("no rank set '", key, "' within ", absl::FormatDuration(timeout),
                                                 ": a peer did not come to the meeting");
  return WithFault(absl::UnavailableError(why), Fault::kPeer);
}

absl::Status RankSession::ConfirmEpochIsNewest(int64_t step, const std::string& purpose) {
  return AskToPublish(step, purpose, "").status();
}

absl::StatusOr<std::string> RankSession::AskForMark(int64_t step, const std::string& purpose,
                                                    const std::string& manifest_digest) {
  MOTLEY_ASSIGN_OR_RETURN(const PublishAnswerCommand answer, AskToPublish(step, purpose, manifest_digest));
  if (!answer.mark.empty()) return answer.mark;
  return absl::FailedPreconditionError(absl::StrCat("the coordinator let this generation ", purpose,
                                                    ", but gave no mark: it is of a version before checkpoint.storage"));
}

absl::StatusOr<PublishAnswerCommand> RankSession::AskToPublish(int64_t step, const std::string& purpose,
                                                               const std::string& manifest_digest) {
  int64_t question = 0;
  {
    absl::MutexLock lock(&mutex_);
    question = ++questions_;
  }
  MOTLEY_RETURN_IF_ERROR(Send(WorkerReport(PublishReport{job_, epoch_, step, rank_, question, purpose, manifest_digest})));
  absl::MutexLock lock(&mutex_);
  ++waiting_;
  changed_.WaitFor(mutex_, options_.publish_timeout,
                   [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || answers_.contains(question); });
  --waiting_;
  auto answer = answers_.extract(question);
  if (answer.empty()) {
    return WithFault(
        absl::UnavailableError(absl::StrCat("the coordinator did not say whether this generation may still ", purpose)),
        Fault::kPeer);
  }
  if (answer.mapped().allowed) return std::move(answer.mapped());
  return absl::FailedPreconditionError(absl::StrCat("this generation may not ", purpose, ": ", answer.mapped().reason));
}

void RankSession::OnReady(const std::vector<TransportUse>& transports, int64_t context_bytes) {
  RankReport report{job_, epoch_, rank_, device_, RankEventKind::kReady};
  report.transports = transports;
  report.context_bytes = context_bytes;
  (void)Send(WorkerReport(std::move(report)));
}

void RankSession::OnStep(const engine::StepResult& step) {
  bool awaited = false;
  {
    absl::MutexLock lock(&mutex_);
    steps_.Add(step);
    awaited = awaited_steps_.erase(step.step) > 0;
  }
  if (awaited) SendTrace(step.step);
  StepReport report{job_, epoch_, rank_, {}, step.peak_memory_bytes, step.lateness_seconds, step.lanes, step.host_memory_bytes};
  report.held_memory_bytes = step.held_memory_bytes;
  report.memory = step.memory;
  report.stats.step = step.step;
  report.stats.epoch = epoch_;
  report.stats.loss = step.loss;
  report.stats.grad_norm = step.grad_norm;
  report.stats.lr = step.lr;
  report.stats.step_seconds = step.step_seconds;
  report.stats.peak_memory_bytes = step.peak_memory_bytes;
  report.stats.lateness_seconds = step.lateness_seconds;
  report.stats.loss_scale = step.loss_scale;
  report.stats.skipped = step.skipped;
  if (step.has_validation_loss) report.stats.validation_loss = step.validation_loss;
  report.stats.validation_bits_per_byte = step.validation_bits_per_byte;
  if (records_ != nullptr) records_->Add(report.stats);
  (void)Send(WorkerReport(std::move(report)));
}

void RankSession::OnProgress(int64_t step, int64_t instruction, const std::string& doing) {
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_.Now();
    if (now - last_progress_ < options_.progress_interval) return;
    last_progress_ = now;
  }
  (void)Send(ProgressReport{epoch_, step, instruction, doing.empty() ? "working" : doing});
}

// The engine may compute or wait for long without moving; this says that the process is not stopped.
void RankSession::BeatLoop() {
  while (true) {
    ProgressReport beat;
    {
      absl::MutexLock lock(&mutex_);
      const bool over = changed_.WaitFor(mutex_, options_.progress_interval,
                                         [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_; });
      if (over) return;
      beat.epoch = epoch_;
      if (waiting_ > 0) beat.doing = "waiting for the coordinator";
    }
    (void)Send(beat);
  }
}

void RankSession::OnCheckpoint(int64_t step, const std::string& folder, int64_t bytes, double seconds) {
  std::error_code ignored;
  const auto space = std::filesystem::space(folder, ignored);
  const int64_t free_bytes = ignored ? 0 : static_cast<int64_t>(space.available);
  const std::string called = on_nodes_disks_ ? std::filesystem::path(folder).filename().string() : folder;
  (void)Send(WorkerReport(CheckpointReport{job_, epoch_, step, called, bytes, seconds, free_bytes, job_uid_}));
}

void RankSession::OnCheckpointFailed(int64_t step, const std::string& message, const DeviceId& blamed) {
  (void)Send(WorkerReport(CheckpointFailedReport{job_, epoch_, step, CleanLine(message), blamed}));
}

void RankSession::OnLog(const std::string& line) {
  (void)Send(WorkerReport(LogReport{job_, epoch_, device_.value(), CleanLine(line), absl::ToUnixMillis(clock_.WallNow())}));
}

}  // namespace motley::worker
