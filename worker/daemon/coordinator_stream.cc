#include "worker/daemon/coordinator_stream.h"

#include <utility>

#include "common/wire/session.h"

namespace motley::worker {
namespace {

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::UnavailableError("the coordinator closed the session");
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

std::shared_ptr<CoordinatorStream> CoordinatorStream::Open(const std::shared_ptr<grpc::Channel>& channel,
                                                           const NodeDescription& hello, std::function<void()> wake) {
  std::shared_ptr<CoordinatorStream> stream(new CoordinatorStream(std::move(wake)));
  stream->connection_->channel = channel;
  stream->connection_->stub = v1::WorkerService::NewStub(channel);
  {
    absl::MutexLock lock(&stream->mutex_);
    stream->self_ = stream;
    stream->writing_ = true;
  }
  *stream->outgoing_.mutable_hello() = wire::ToProto(hello);
  stream->connection_->stub->async()->Session(&stream->connection_->context, stream.get());
  stream->AddHold();  // operations are started from the owner's thread: until it has seen the end
  stream->StartRead(&stream->incoming_);
  stream->StartWrite(&stream->outgoing_);
  stream->StartCall();
  return stream;
}

std::optional<v1::CoordinatorMessage> CoordinatorStream::TakeMessage() {
  v1::CoordinatorMessage message;
  {
    absl::MutexLock lock(&mutex_);
    if (!arrived_) return std::nullopt;
    arrived_ = false;
    message.Swap(&incoming_);
    if (over_) return message;
  }
  StartRead(&incoming_);
  return message;
}

std::optional<absl::Status> CoordinatorStream::TakeEnd() {
  bool release = false;
  std::unique_ptr<Connection> ended;  // destroyed here, in the owner's thread, and not under the lock
  {
    absl::MutexLock lock(&mutex_);
    if (end_) {
      ended = std::move(connection_);
      return end_;
    }
    release = over_ && !released_;
    released_ = over_;
  }
  if (release) RemoveHold();  // not under the lock: gRPC may call back from here
  return std::nullopt;
}

void CoordinatorStream::Write(WorkerReport report) {
  outgoing_ = wire::ToProto(report);
  {
    absl::MutexLock lock(&mutex_);
    unsent_ = std::move(report);
    if (over_) return;
    writing_ = true;
  }
  StartWrite(&outgoing_);
}

bool CoordinatorStream::writing() const {
  absl::MutexLock lock(&mutex_);
  return writing_;
}

std::optional<WorkerReport> CoordinatorStream::TakeUnsent() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(unsent_, std::nullopt);
}

void CoordinatorStream::SayGoodbye() {
  {
    absl::MutexLock lock(&mutex_);
    if (over_) return;
  }
  StartWritesDone();
}

void CoordinatorStream::Cancel() { connection_->context.TryCancel(); }

void CoordinatorStream::OnReadDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  arrived_ = ok;
  over_ = over_ || !ok;
  wake_();
}

void CoordinatorStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (ok) unsent_.reset();  // else the stream is over, and the read says so
  wake_();
}

void CoordinatorStream::OnDone(const grpc::Status& status) {
  std::shared_ptr<CoordinatorStream> last_owner;  // destroyed after the lock is gone
  absl::MutexLock lock(&mutex_);
  last_owner.swap(self_);
  end_ = FromGrpc(status);
  wake_();
}

}  // namespace motley::worker
