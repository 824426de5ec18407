#include "tests/coordinator/rpc/fake_worker.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/version.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"
#include "common/session/rendezvous_key.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

}  // namespace

FakeWorker::FakeWorker(const std::string& address, const std::string& node, Options options)
    : node_(node), options_(std::move(options)) {
  grpc::ChannelArguments arguments = DirectArguments();
  if (options_.credentials != nullptr) ExpectCoordinator(arguments);
  const auto credentials = options_.credentials ? options_.credentials : grpc::InsecureChannelCredentials();
  stub_ = v1::WorkerService::NewStub(options_.channel ? options_.channel : OpenChannel(address, arguments, credentials));
  context_.set_wait_for_ready(true);
  stream_ = stub_->Session(&context_);
  v1::WorkerMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_node(node);
  hello->set_version(kVersion);
  hello->set_protocol(options_.protocol);
  hello->set_incarnation(options_.incarnation);
  hello->set_data_address("127.0.0.1");
  hello->set_reach_port(options_.reach_port);
  for (int i = 0; i < options_.devices; ++i) {
    v1::DeviceDescription* device = hello->add_devices();
    device->set_id(absl::StrCat(node, "/gpu", i));
    device->set_model("test");
    device->set_kind("emulated");
    // A card has room for its context and NCCL's buffers.
    device->set_memory_bytes(options_.compute_capability > 0 ? int64_t{8} << 30 : int64_t{1} << 30);
    device->set_flops_per_second(1e9);
    device->set_node_host_memory_bytes(options_.host_memory_bytes);
    if (options_.compute_capability == 0) continue;
    device->set_kind("cuda");
    device->mutable_card()->set_compute_capability(options_.compute_capability);
    device->mutable_card()->set_nccl_version(22809);
  }
  hello->mutable_newest_epochs()->Assign(options_.seen.begin(), options_.seen.end());
  if (options_.on_hello) options_.on_hello(*hello);
  Send(message);
  reader_ = std::thread([this] { Read(); });
  if (options_.heartbeats) heart_ = std::thread([this] { Beat(); });
}

FakeWorker::~FakeWorker() {
  Drop();
  reader_.join();
  if (heart_.joinable()) heart_.join();
}

void FakeWorker::Beat() {
  v1::WorkerMessage message;
  const std::function<bool()> over = [this] { return ended_; };
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&over), absl::Milliseconds(200))) return;
    }
    message.mutable_heartbeat()->set_unix_ms(absl::ToUnixMillis(absl::Now()) + options_.clock_ahead_ms);
    Send(message);
  }
}

void FakeWorker::Drop() { context_.TryCancel(); }

void FakeWorker::Send(const v1::WorkerMessage& message) {
  absl::MutexLock lock(&write_mutex_);
  stream_->Write(message);
}

void FakeWorker::Read() {
  v1::CoordinatorMessage message;
  while (stream_->Read(&message)) Handle(message);
  const grpc::Status status = stream_->Finish();
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  status_ = status;
}

void FakeWorker::Handle(const v1::CoordinatorMessage& message) {
  if (message.has_welcome()) {
    absl::MutexLock lock(&mutex_);
    welcome_ = true;
    mark_ = message.welcome().store_mark();
    key_id_ = message.welcome().key_id();
  } else if (message.has_authorities() || message.has_renewal()) {
    if (options_.on_membership) options_.on_membership(message);
  } else if (message.has_storage_check() && message.storage_check().over()) {
    absl::MutexLock lock(&mutex_);
    ++forgotten_;
  } else if (message.has_storage_check() && options_.answer_storage) {
    v1::WorkerMessage answer;
    v1::StorageCheckResult* result = answer.mutable_storage_check_result();
    result->set_job_id(message.storage_check().job_id());
    result->set_epoch(message.storage_check().epoch());
    result->set_data_bytes(100000);
    result->set_data_digest(options_.data_digest);
    if (!message.storage_check().initial().empty()) result->set_initial_digest(options_.initial_digest);
    result->set_token_seen(options_.sees_token);
    result->set_error(options_.storage_error);
    result->set_error_code(options_.storage_error_code);
    result->set_check_id(message.storage_check().check_id());
    if (message.storage_check().has_sample()) result->set_sampled(options_.sampled);
    if (!message.storage_check().verify_checkpoint().empty()) {
      result->set_error(options_.verify_error);
      result->set_error_code(options_.verify_error.empty() ? 0 : static_cast<int>(absl::StatusCode::kDataLoss));
    }
    Send(answer);
  } else if (message.has_holdings_request()) {
    v1::WorkerMessage answer;
    v1::Holdings* holdings = answer.mutable_holdings();
    holdings->set_job_id(message.holdings_request().job_id());
    holdings->set_epoch(message.holdings_request().epoch());
    holdings->set_check_id(message.holdings_request().check_id());
    holdings->set_port(7);
    holdings->set_certificate(absl::StrCat("certificate of ", node_));
    if (!options_.on_holdings || options_.on_holdings(message.holdings_request(), holdings)) Send(answer);
  } else if (message.has_copy_request() && options_.on_copy) {
    v1::WorkerMessage answer;
    v1::FetchProgress* progress = answer.mutable_fetch_progress();
    progress->set_job_id(message.copy_request().job_id());
    progress->set_epoch(message.copy_request().epoch());
    progress->set_copy_id(message.copy_request().copy_id());
    progress->set_done(true);
    options_.on_copy(message.copy_request(), progress);
    Send(answer);
  } else if (message.has_drop_request()) {
    if (options_.on_drop) options_.on_drop(message.drop_request());
  } else if (message.has_carry_request()) {
    if (options_.on_carry) options_.on_carry(message.carry_request());
  } else if (message.has_reach_check() && options_.answer_reach) {
    v1::WorkerMessage answer;
    v1::ReachResult* result = answer.mutable_reach_result();
    result->set_check_id(message.reach_check().check_id());
    for (const v1::ReachTarget& target : message.reach_check().targets()) {
      v1::ReachAnswer* to = result->add_answers();
      to->set_node(target.node());
      const bool mended = options_.mended != nullptr && *options_.mended;
      if (!mended && (target.node() == options_.unreachable || options_.unreachable == "*")) {
        to->set_error("connection timed out");
      } else {
        to->set_connect_seconds(0.0005);
        if (message.reach_check().burst()) to->set_bytes_per_second(options_.bytes_per_second);
      }
    }
    if (!options_.lies_about.empty()) {
      v1::ReachAnswer* lie = result->add_answers();
      lie->set_node(options_.lies_about);
      lie->set_error("it is not reached by anybody");
      Send(answer);  // and once more, below
    }
    Send(answer);
  } else if (message.has_profile_request() && options_.answer_profiles) {
    AnswerProfile(message.profile_request());
  } else if (message.has_start_epoch()) {
    const v1::RankAssignment& first = message.start_epoch().ranks(0);
    {
      absl::MutexLock lock(&mutex_);
      for (const v1::JobEpoch& seen : options_.seen) {
        if (seen.key_id() == key_id_ && seen.job_id() == first.job_id() && first.epoch() <= seen.epoch()) return;
      }
      See(first.job_id(), first.epoch(), message.start_epoch().token());
    }
    if (options_.on_source) options_.on_source(message.start_epoch().source());
    for (const v1::RankAssignment& rank : message.start_epoch().ranks()) {
      if (!options_.on_start || options_.on_start(rank)) Meet(rank, "train/");
    }
    absl::MutexLock lock(&mutex_);
    ranks_.assign(message.start_epoch().ranks().begin(), message.start_epoch().ranks().end());
    if (!ranks_.empty()) last_step_ = ranks_[0].start_step();
  } else if (message.has_stop_epoch()) {
    AnswerStop(message.stop_epoch());
  } else if (message.has_trace_request() && options_.answer_traces) {
    const v1::TraceRequest& request = message.trace_request();
    v1::WorkerMessage answer;
    v1::TraceResult* result = answer.mutable_trace_result();
    result->set_job_id(request.job_id());
    result->set_epoch(request.epoch());
    result->set_rank(request.rank());
    result->set_step(request.step());
    result->set_error(options_.trace_error);
    result->mutable_spans()->add_begin_ns(0);
    result->mutable_spans()->add_duration_ns(request.step());
    Send(answer);
  } else if (message.has_publish_answer()) {
    absl::MutexLock lock(&mutex_);
    answers_.push_back(message.publish_answer());
  }
}

void FakeWorker::AnswerStop(const v1::StopEpoch& stop) {
  std::vector<v1::RankAssignment> ranks;
  int64_t step = 0;
  {
    absl::MutexLock lock(&mutex_);
    stopped_epoch_ = std::max(stopped_epoch_, stop.epoch());
    See(stop.job_id(), stop.epoch(), stop.token());
    for (const v1::RankAssignment& rank : ranks_) {
      if (rank.epoch() == stop.epoch()) ranks.push_back(rank);
    }
    for (const v1::RankAssignment& rank : measuring_) {
      if (rank.epoch() == stop.epoch()) ranks.push_back(rank);
    }
    step = last_step_;
  }
  if (!stop.save() && !options_.answer_kills) return;
  for (const v1::RankAssignment& rank : ranks) {
    if (stop.save() && options_.on_save && rank.rank() == 0) options_.on_save(rank, step);
    SendEvent(rank, stop.save() ? v1::RankEvent::KIND_FINISHED : v1::RankEvent::KIND_DIED, "stopped as asked");
  }
}

void FakeWorker::Meet(const v1::RankAssignment& rank, const std::string& run) {
  if (!options_.meets) return;
  v1::WorkerMessage message;
  message.mutable_kv_set()->set_job_id(rank.job_id());
  message.mutable_kv_set()->set_epoch(rank.epoch());
  message.mutable_kv_set()->set_key(RendezvousKey(absl::StrCat(run, rank.epoch(), "/"), "peer", rank.rank()));
  message.mutable_kv_set()->set_value("here");
  Send(message);
}

void FakeWorker::Step(int64_t step) {
  for (const v1::RankAssignment& rank : ranks()) {
    v1::WorkerMessage message;
    v1::StepReport* report = message.mutable_step_report();
    report->set_job_id(rank.job_id());
    report->set_epoch(rank.epoch());
    report->set_rank(rank.rank());
    report->mutable_record()->set_step(step);
    report->mutable_record()->set_loss(5.0 / static_cast<double>(step));
    report->mutable_record()->set_step_seconds(0.5);
    report->set_peak_memory_bytes((int64_t{1} << 29) + rank.rank());
    report->set_held_memory_bytes(int64_t{1} << 28);
    report->set_host_memory_bytes(1000);
    if (options_.measures_purposes) {
      report->mutable_memory()->set_parameters(7000);
      report->mutable_memory()->set_workspace(8000);
      report->mutable_memory()->set_host_optimizer(1000);
      report->mutable_memory()->set_has_passes(options_.measures_passes);
    }
    Send(message);
  }
  absl::MutexLock lock(&mutex_);
  last_step_ = step;
}

void FakeWorker::StepTo(int64_t step) {
  int64_t next = 0;
  {
    absl::MutexLock lock(&mutex_);
    next = last_step_ + 1;
  }
  for (; next <= step; ++next) Step(next);
}

void FakeWorker::SendAll(v1::RankEvent::Kind kind, const std::string& message) {
  for (const v1::RankAssignment& rank : ranks()) SendEvent(rank, kind, message);
}

namespace {

v1::WorkerMessage EventOf(const v1::RankAssignment& rank, v1::RankEvent::Kind kind, const std::string& text) {
  v1::WorkerMessage message;
  v1::RankEvent* event = message.mutable_rank_event();
  event->set_job_id(rank.job_id());
  event->set_epoch(rank.epoch());
  event->set_rank(rank.rank());
  event->set_device_id(rank.device().id());
  event->set_kind(kind);
  event->set_message(text);
  return message;
}

}  // namespace

void FakeWorker::SendEvent(const v1::RankAssignment& rank, v1::RankEvent::Kind kind, const std::string& text) {
  Send(EventOf(rank, kind, text));
}

void FakeWorker::Fail(v1::Fault fault, const std::string& text, const std::string& damaged_checkpoint) {
  v1::WorkerMessage message = EventOf(ranks()[0], v1::RankEvent::KIND_FAILED, text);
  message.mutable_rank_event()->set_fault(fault);
  message.mutable_rank_event()->set_damaged_checkpoint(damaged_checkpoint);
  Send(message);
}

std::vector<v1::RankAssignment> FakeWorker::ranks() {
  absl::MutexLock lock(&mutex_);
  return ranks_;
}

bool FakeWorker::Wait(const std::function<bool()>& condition) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&condition), kPatience);
}

grpc::Status FakeWorker::WaitForEnd() {
  Wait([this] { return ended_; });
  absl::MutexLock lock(&mutex_);
  return status_;
}
bool FakeWorker::WaitForWelcome() {
  return Wait([this] { return welcome_; });
}
std::vector<v1::RankAssignment> FakeWorker::WaitForStart(int64_t after) {
  const bool started = Wait([this, after] { return !ranks_.empty() && ranks_[0].epoch() > after; });
  return started ? ranks() : std::vector<v1::RankAssignment>();
}
bool FakeWorker::WaitForStop(int64_t epoch) {
  return Wait([this, epoch] { return stopped_epoch_ >= epoch; });
}
bool FakeWorker::HasStopped(int64_t epoch) {
  absl::MutexLock lock(&mutex_);
  return stopped_epoch_ >= epoch;
}
v1::StoreMark FakeWorker::mark() {
  absl::MutexLock lock(&mutex_);
  return mark_;
}
std::vector<v1::JobEpoch> FakeWorker::seen() {
  absl::MutexLock lock(&mutex_);
  std::vector<v1::JobEpoch> seen;
  for (const auto& [job, epoch] : seen_) seen.push_back(epoch);
  return seen;
}
// With the lock held.
void FakeWorker::See(const std::string& job, int64_t epoch, const std::string& token) {
  if (token.empty()) return;
  v1::JobEpoch& newest = seen_[job];
  if (epoch < newest.epoch()) return;
  newest.set_job_id(job);
  newest.set_epoch(epoch);
  newest.set_token(token);
  newest.set_key_id(key_id_);
}
bool FakeWorker::WaitForForgotten() {
  return Wait([this] { return forgotten_ > 0; });
}
bool FakeWorker::WaitForTrials(int trials) {
  return Wait([this, trials] { return trials_ >= trials; });
}
bool FakeWorker::WaitForCalledOff() {
  return Wait([this] { return called_off_ > 0; });
}
bool FakeWorker::WaitForAnswer(v1::PublishAnswer* answer) {
  if (!Wait([this] { return !answers_.empty(); })) return false;
  absl::MutexLock lock(&mutex_);
  *answer = answers_.back();
  answers_.pop_back();
  return true;
}

}  // namespace motley::coordinator
