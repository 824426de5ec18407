// One gRPC stream to the coordinator. gRPC's threads put what happened into a mailbox and wake the owner; everything else is the
// owner's thread.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/session/session.h"
#include "proto/motley/v1/worker.grpc.pb.h"

namespace motley::worker {

class CoordinatorStream : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  // Says hello. `wake` is called from gRPC's threads, under a lock; not any more once TakeEnd has given the end. The object lives
  // until gRPC is done with it, whenever its owner lets go.
  static std::shared_ptr<CoordinatorStream> Open(const std::shared_ptr<grpc::Channel>& channel, const NodeDescription& hello,
                                                 std::function<void()> wake);

  // The oldest message that was not taken yet; the next one is read after it.
  std::optional<v1::CoordinatorMessage> TakeMessage();
  // How the stream ended, once it has: the coordinator's status. UNAVAILABLE: it closed the stream, or the connection broke. The
  // owner asks until it has the answer; nothing but TakeUnsent may follow.
  std::optional<absl::Status> TakeEnd();

  // One at a time: `writing` says whether the last one is still on its way.
  void Write(WorkerReport report);
  bool writing() const;
  // What was written and did not go out, after the end.
  std::optional<WorkerReport> TakeUnsent();
  // No more is written.
  void SayGoodbye();
  void Cancel();

 private:
  explicit CoordinatorStream(std::function<void()> wake) : wake_(std::move(wake)) {}
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  // What holds the channel. Its last holder must not be one of gRPC's callback threads: the channel's end joins them, and one
  // that joins itself goes on over freed memory. So the owner takes it over with the end.
  struct Connection {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::WorkerService::Stub> stub;
    grpc::ClientContext context;
  };

  const std::function<void()> wake_;
  std::unique_ptr<Connection> connection_ = std::make_unique<Connection>();  // owner's thread; null after the end
  v1::CoordinatorMessage incoming_;                                          // gRPC's while a read is under way
  v1::WorkerMessage outgoing_;                                               // gRPC's while a write is under way

  mutable absl::Mutex mutex_;
  bool arrived_ ABSL_GUARDED_BY(mutex_) = false;  // incoming_ may be taken
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;      // no more is read or written
  bool released_ ABSL_GUARDED_BY(mutex_) = false;  // the owner starts no more operations, so gRPC may finish
  std::optional<WorkerReport> unsent_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<CoordinatorStream> self_ ABSL_GUARDED_BY(mutex_);  // until OnDone
};

}  // namespace motley::worker
