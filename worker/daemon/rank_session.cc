#include "worker/daemon/rank_session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/status_macros.h"
#include "common/utf8.h"
#include "common/wire/assignment.h"
#include "common/wire/profile.h"
#include "worker/daemon/frame.h"

namespace motley::worker {
namespace {

v1::RankEvent::Kind KindOf(const absl::Status& status) {
  if (absl::IsAborted(status)) return v1::RankEvent::KIND_NONFINITE;
  if (absl::IsUnavailable(status)) return v1::RankEvent::KIND_PEER_LOST;
  return v1::RankEvent::KIND_FAILED;
}

std::chrono::nanoseconds ToChrono(absl::Duration d) { return absl::ToChronoNanoseconds(d); }

}  // namespace

RankSession::RankSession(int fd, EngineFactory factory, Options options)
    : fd_(fd), factory_(std::move(factory)), options_(std::move(options)) {}

RankSession::~RankSession() { close(fd_); }

absl::Status RankSession::Serve() {
  std::thread reader([this] { ReadLoop(); });
  std::thread beat([this] { BeatLoop(); });
  while (true) {
    v1::ToRank message;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      busy_ = false;
      changed_.wait(lock, [this] { return closed_ || !work_.empty(); });
      if (closed_) break;
      message = std::move(work_.front());
      work_.pop_front();
      busy_ = true;
    }
    message.has_load() ? RunTraining(message.load()) : RunProfile(message.profile());
  }
  shutdown(fd_, SHUT_RDWR);
  reader.join();
  beat.join();
  std::lock_guard<std::mutex> lock(mutex_);
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
    while (true) {
      absl::StatusOr<std::optional<std::string>> frame = decoder.Next();
      if (!frame.ok()) end = frame.status();
      if (!frame.ok() || !frame->has_value()) break;
      v1::ToRank message;
      if (!message.ParseFromString(**frame)) {
        end = absl::DataLossError("the worker sent bytes that are not a message");
        break;
      }
      Handle(message);
    }
  }
  bool orphaned = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    end_ = end;
    orphaned = busy_;
    changed_.notify_all();
  }
  if (orphaned && options_.on_orphaned) options_.on_orphaned();
}

void RankSession::Handle(const v1::ToRank& message) {
  std::lock_guard<std::mutex> lock(mutex_);
  switch (message.message_case()) {
    case v1::ToRank::kLoad:
    case v1::ToRank::kProfile:
      stop_ = stop_save_ = false;
      work_.push_back(message);
      break;
    case v1::ToRank::kStop:
      stop_ = true;
      stop_save_ = message.stop().save();
      if (running_ != nullptr) running_->RequestStop(stop_save_);
      break;
    case v1::ToRank::kKvValue: values_[message.kv_value().key()] = message.kv_value().value(); break;
    case v1::ToRank::kPublishAnswer: answers_[message.publish_answer().question()] = message.publish_answer(); break;
    default: break;
  }
  changed_.notify_all();
}

void RankSession::SetAssignment(const v1::RankAssignment& assignment) {
  std::lock_guard<std::mutex> lock(mutex_);
  job_ = assignment.job_id();
  epoch_ = assignment.epoch();
  rank_ = assignment.rank();
  device_ = assignment.device().id();
  values_.clear();
  answers_.clear();
}

void RankSession::RunTraining(const v1::RankAssignment& proto) {
  SetAssignment(proto);
  absl::StatusOr<RankAssignment> assignment = wire::FromProto(proto);
  if (!assignment.ok()) return SendEvent(v1::RankEvent::KIND_FAILED, absl::StrCat("assignment: ", assignment.status().message()));
  engine_ = factory_(*this);
  bool stopped = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    running_ = engine_.get();
    stopped = stop_;
  }
  absl::StatusOr<engine::RunEnd> end = stopped ? engine::RunEnd::kStopped : engine_->Run(*assignment);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    running_ = nullptr;
    stopped = stop_;
  }
  if (!end.ok()) engine_.reset();
  if (end.ok() || (stopped && absl::IsCancelled(end.status()))) {
    const bool all = end.ok() && *end == engine::RunEnd::kAllSteps;
    SendEvent(v1::RankEvent::KIND_FINISHED, all ? "all steps done" : "stopped as asked");
  } else {
    SendEvent(KindOf(end.status()), std::string(end.status().message()));
  }
}

absl::Status RankSession::Profile(const v1::ProfileRequest& request, v1::ProfileResult* result) {
  MOTLEY_ASSIGN_OR_RETURN(const RankAssignment assignment, wire::FromProto(request.ranks(0)));
  if (engine_ == nullptr) engine_ = factory_(*this);
  if (request.compute()) {
    MOTLEY_ASSIGN_OR_RETURN(const ComputeProfile profile, engine_->ProfileCompute(assignment));
    *result->add_compute() = wire::ToProto(profile);
  }
  if (request.collectives()) {
    MOTLEY_ASSIGN_OR_RETURN(const CollectiveProfile profile, engine_->ProfileCollectives(assignment));
    if (assignment.rank == 0) *result->mutable_collectives() = wire::ToProto(profile);
  }
  return absl::OkStatus();
}

void RankSession::RunProfile(const v1::ProfileRequest& request) {
  v1::FromRank message;
  v1::ProfileResult* result = message.mutable_profile_result();
  result->set_job_id(request.job_id());
  result->set_epoch(request.epoch());
  if (request.ranks_size() != 1) {
    result->set_error("a rank's profile request must hold exactly its own assignment");
  } else {
    SetAssignment(request.ranks(0));
    if (absl::Status status = Profile(request, result); !status.ok()) {
      engine_.reset();
      result->set_error(ValidUtf8(std::string(status.message())));
    }
  }
  (void)Send(message);
}

absl::Status RankSession::Send(const v1::FromRank& message) {
  const std::string frame = EncodeFrame(message.SerializeAsString());
  const bool last_word = message.has_profile_result() || (message.has_event() && message.event().kind() != v1::RankEvent::KIND_READY);
  if (last_word) {
    // The worker may close the socket at once: that is no orphan's end.
    std::lock_guard<std::mutex> lock(mutex_);
    busy_ = false;
  }
  std::lock_guard<std::mutex> lock(write_mutex_);
  return WriteAll(fd_, frame);
}

void RankSession::SendEvent(v1::RankEvent::Kind kind, const std::string& text) {
  v1::FromRank message;
  v1::RankEvent* event = message.mutable_event();
  event->set_job_id(job_);
  event->set_epoch(epoch_);
  event->set_rank(rank_);
  event->set_device_id(device_);
  event->set_kind(kind);
  event->set_message(ValidUtf8(text));
  event->set_monotonic_ns(absl::ToInt64Nanoseconds(SystemClock().Now()));
  (void)Send(message);  // a closed socket ends Serve by itself
}

absl::Status RankSession::KvSet(const std::string& key, const std::string& value) {
  v1::FromRank message;
  v1::KvSet* set = message.mutable_kv_set();
  set->set_job_id(job_);
  set->set_epoch(epoch_);
  set->set_key(key);
  set->set_value(value);
  return Send(message);
}

absl::StatusOr<std::string> RankSession::KvGet(const std::string& key, absl::Duration timeout) {
  v1::FromRank message;
  v1::KvGet* get = message.mutable_kv_get();
  get->set_job_id(job_);
  get->set_epoch(epoch_);
  get->set_key(key);
  get->set_rank(rank_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = values_.find(key); it != values_.end()) return it->second;
  }
  MOTLEY_RETURN_IF_ERROR(Send(message));
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiting_;
  changed_.wait_for(lock, ToChrono(timeout), [&] { return closed_ || stop_ || values_.contains(key); });
  --waiting_;
  if (auto it = values_.find(key); it != values_.end()) return it->second;
  if (stop_) return absl::CancelledError(absl::StrCat("told to stop while waiting for '", key, "'"));
  if (closed_) return absl::UnavailableError("the worker closed the rank's socket");
  return absl::UnavailableError(
      absl::StrCat("no rank set '", key, "' within ", absl::FormatDuration(timeout), ": a peer did not come to the meeting"));
}

absl::Status RankSession::ConfirmEpochIsNewest(int64_t step, const std::string& purpose) {
  v1::FromRank message;
  v1::PublishRequest* request = message.mutable_publish_request();
  request->set_job_id(job_);
  request->set_epoch(epoch_);
  request->set_step(step);
  request->set_rank(rank_);
  request->set_purpose(purpose);
  int64_t question = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    question = ++questions_;
  }
  request->set_question(question);
  MOTLEY_RETURN_IF_ERROR(Send(message));
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiting_;
  changed_.wait_for(lock, ToChrono(options_.publish_timeout), [&] { return closed_ || answers_.contains(question); });
  --waiting_;
  auto it = answers_.find(question);
  if (it == answers_.end()) {
    return absl::UnavailableError(absl::StrCat("the coordinator did not say whether this epoch may still ", purpose));
  }
  const v1::PublishAnswer answer = it->second;
  answers_.erase(it);
  if (answer.allowed()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("this epoch may not ", purpose, ": ", answer.reason()));
}

void RankSession::OnReady() { SendEvent(v1::RankEvent::KIND_READY, ""); }

void RankSession::OnStep(const engine::StepResult& step) {
  v1::FromRank message;
  v1::StepReport* report = message.mutable_step();
  report->set_job_id(job_);
  report->set_epoch(epoch_);
  report->set_rank(rank_);
  report->set_busy_seconds(step.busy_seconds);
  report->set_collective_seconds(step.collective_seconds);
  report->set_peak_memory_bytes(step.peak_memory_bytes);
  report->set_lateness_seconds(step.lateness_seconds);
  v1::StepRecord* record = report->mutable_record();
  record->set_step(step.step);
  record->set_epoch(epoch_);
  record->set_loss(step.loss);
  record->set_grad_norm(step.grad_norm);
  record->set_lr(step.lr);
  record->set_step_seconds(step.step_seconds);
  record->set_has_validation_loss(step.has_validation_loss);
  record->set_validation_loss(step.validation_loss);
  record->set_peak_memory_bytes(step.peak_memory_bytes);
  record->set_lateness_seconds(step.lateness_seconds);
  (void)Send(message);
}

void RankSession::OnProgress(int64_t step, int64_t instruction, const std::string& doing) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const absl::Time now = absl::Now();
    const absl::Duration since = now - last_progress_;
    if (since >= absl::ZeroDuration() && since < options_.progress_interval) return;
    last_progress_ = now;
  }
  v1::FromRank message;
  v1::Progress* progress = message.mutable_progress();
  progress->set_epoch(epoch_);
  progress->set_step(step);
  progress->set_instruction(instruction);
  progress->set_doing(doing.empty() ? "working" : doing);
  (void)Send(message);
}

// The engine may compute or wait for long without moving; this says that the process is not stopped.
void RankSession::BeatLoop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, ToChrono(options_.progress_interval), [this] { return closed_; })) {
    v1::FromRank message;
    message.mutable_progress()->set_epoch(epoch_);
    if (waiting_ > 0) message.mutable_progress()->set_doing("waiting for the coordinator");
    lock.unlock();
    (void)Send(message);
    lock.lock();
  }
}

void RankSession::OnCheckpoint(int64_t step, const std::string& folder, int64_t bytes, double seconds) {
  v1::FromRank message;
  v1::CheckpointPublished* published = message.mutable_checkpoint_published();
  published->set_job_id(job_);
  published->set_epoch(epoch_);
  published->set_step(step);
  published->set_folder(folder);
  published->set_bytes(bytes);
  published->set_seconds(seconds);
  (void)Send(message);
}

void RankSession::OnCheckpointFailed(int64_t step, const std::string& text) {
  v1::FromRank message;
  v1::CheckpointFailed* failed = message.mutable_checkpoint_failed();
  failed->set_job_id(job_);
  failed->set_epoch(epoch_);
  failed->set_step(step);
  failed->set_message(ValidUtf8(text));
  (void)Send(message);
}

void RankSession::OnLog(const std::string& line) {
  v1::FromRank message;
  v1::LogChunk* log = message.mutable_log();
  log->set_job_id(job_);
  log->set_epoch(epoch_);
  log->set_source(device_);
  log->set_text(ValidUtf8(line));
  log->set_unix_ms(absl::ToUnixMillis(absl::Now()));
  (void)Send(message);
}

}  // namespace motley::worker
