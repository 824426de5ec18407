#include "worker/daemon/session.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/logging.h"

namespace motley::worker {
namespace {

constexpr int kMaxMessageBytes = 64 << 20;
constexpr absl::Duration kGoodbye = absl::Seconds(1);

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // A connection of its own, so that every attempt is a new one and not gRPC's memory of a failed one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Pings below five minutes earn a server's GOAWAY unless it was set up for them.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 360'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::UnavailableError("the coordinator closed the session");
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

Session::Session(SessionConfig config, Handler handler, Outbox& outbox)
    : config_(std::move(config)), handler_(std::move(handler)), outbox_(outbox), thread_([this] { Run(); }) {}

Session::~Session() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  outbox_.Wake();
  {
    // The writer closes the stream and the coordinator ends it; if it does not, the call is cancelled.
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(kGoodbye), [this] { return context_ == nullptr; });
    if (context_ != nullptr) context_->TryCancel();
  }
  thread_.join();
}

// The name belongs to another living worker, or this one is of another version: trying again would not help. A worker that was
// welcome before is let in again as soon as the coordinator has noticed that the old stream is gone.
bool Session::IsRefusal(const absl::Status& status) const {
  if (absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status)) return true;
  return absl::IsAlreadyExists(status) && !ever_welcomed_;
}

bool Session::WaitBeforeNext(absl::Duration pause) {
  std::unique_lock<std::mutex> lock(mutex_);
  return !changed_.wait_for(lock, absl::ToChronoNanoseconds(pause), [this] { return stopping_; });
}

void Session::Run() {
  absl::Duration pause = config_.first_pause;
  std::string last_reason;
  while (true) {
    bool welcomed = false;
    const absl::Status status = RunStream(&welcomed);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
    }
    if (IsRefusal(status)) return handler_.on_refused(status);
    const std::string reason(status.message());
    if (welcomed) {
      handler_.on_disconnected(reason);
      pause = config_.first_pause;
    }
    if (welcomed || reason != last_reason) {
      LogWarning(absl::StrCat("no session with the coordinator at ", config_.coordinator, ": ", reason, "; trying again until it is there"));
      last_reason = reason;
    }
    if (!WaitBeforeNext(pause)) return;
    pause = std::min(2 * pause, config_.longest_pause);
  }
}

absl::Status Session::RunStream(bool* welcomed) {
  const std::shared_ptr<grpc::Channel> channel = NewChannel(config_.coordinator);
  const auto deadline = std::chrono::system_clock::now() + absl::ToChronoMilliseconds(config_.connect_timeout);
  // In short waits, so that a stop is not late.
  while (!channel->WaitForConnected(std::min(deadline, std::chrono::system_clock::now() + std::chrono::milliseconds(200)))) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return absl::CancelledError("stopping");
    if (std::chrono::system_clock::now() >= deadline) return absl::UnavailableError("it cannot be reached");
  }
  grpc::ClientContext context;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return absl::CancelledError("stopping");
    context_ = &context;
    stream_over_ = false;
  }
  const std::unique_ptr<v1::WorkerService::Stub> stub = v1::WorkerService::NewStub(channel);
  const std::unique_ptr<Stream> stream = stub->Session(&context);
  v1::WorkerMessage hello;
  *hello.mutable_hello() = config_.hello;
  stream->Write(hello);
  v1::CoordinatorMessage message;
  std::thread writer;
  if (stream->Read(&message) && message.has_welcome()) {
    *welcomed = ever_welcomed_ = true;
    const absl::Duration heartbeat = absl::Milliseconds(std::max<int64_t>(message.welcome().lease_ms(), 300)) / 3;
    handler_.on_connected();
    writer = std::thread([this, &stream, heartbeat, &context] { WriteLoop(*stream, heartbeat, context); });
    while (stream->Read(&message)) handler_.on_message(message);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stream_over_ = true;
  }
  outbox_.Wake();
  if (writer.joinable()) writer.join();
  const grpc::Status status = stream->Finish();
  std::lock_guard<std::mutex> lock(mutex_);
  context_ = nullptr;
  changed_.notify_all();
  return FromGrpc(status);
}

void Session::WriteLoop(Stream& stream, absl::Duration heartbeat, grpc::ClientContext& context) {
  absl::Time next_heartbeat = absl::Now();
  while (true) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stream_over_) return;
      if (stopping_ && outbox_.size() == 0) {
        stream.WritesDone();
        return;
      }
    }
    const absl::Time now = absl::Now();
    if (now >= next_heartbeat) {
      v1::WorkerMessage beat;
      beat.mutable_heartbeat()->set_unix_ms(absl::ToUnixMillis(now));
      next_heartbeat = now + heartbeat;
      if (!stream.Write(beat)) break;
    }
    std::optional<v1::WorkerMessage> message = outbox_.Pop(std::clamp(next_heartbeat - now, absl::ZeroDuration(), heartbeat));
    if (message && !stream.Write(*message)) {
      outbox_.PutBack(*std::move(message));
      break;
    }
  }
  context.TryCancel();  // wakes the reader
}

}  // namespace motley::worker
