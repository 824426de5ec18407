// gRPC's callbacks, turned into work on the loop. Reactors live until gRPC's OnDone; their last act on the loop deletes them,
// so that nothing posted before can find them gone.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "coordinator/core/core.h"
#include "coordinator/core/loop.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/clean_message.h"
#include "coordinator/rpc/status.h"
#include "coordinator/rpc/stream_source.h"

namespace motley::coordinator {

class UnaryReactor : public grpc::ServerUnaryReactor {
 public:
  UnaryReactor(TaskPoster loop, BusyPeers& busy, const grpc::CallbackServerContext& context, std::function<absl::Status()> call)
      : loop_(loop), mark_(busy, context.peer()) {
    loop_.Post([this, call = std::move(call)] { Finish(ToGrpc(call())); });
  }
  void OnDone() override {
    loop_.Post([this] { delete this; });
  }

 private:
  const TaskPoster loop_;
  const CallMark mark_;
};

template <typename Message>
class StreamReactor : public grpc::ServerWriteReactor<Message> {
 public:
  StreamReactor(TaskPoster loop, Core& core, BusyPeers& busy, const grpc::CallbackServerContext& context,
                std::unique_ptr<StreamSource<Message>> source)
      : loop_(loop), core_(core), mark_(busy, context.peer()), source_(std::move(source)) {
    loop_.Post([this] { PullNext(); });
  }
  void OnWriteDone(bool ok) override {
    loop_.Post([this, ok] { ok ? PullNext() : FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "the client is gone")); });
  }
  void OnCancel() override {
    loop_.Post([this] {
      // A write that is under way ends by itself and finishes the stream.
      if (waiting_) FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"));
      cancelled_ = true;
    });
  }
  void OnDone() override {
    loop_.Post([this] { *alive_ = false, delete this; });
  }

 private:
  void PullNext() {
    waiting_ = false;
    if (finished_) return;
    if (cancelled_) return FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"));
    message_ = Message();  // not Clear: it would keep the memory of a large one for as long as the stream waits
    absl::StatusOr<Pull> pull = source_->Next(core_, &message_);
    if (!pull.ok()) return FinishOnce(ToGrpc(pull.status()));
    if (*pull == Pull::kEnd) return FinishOnce(grpc::Status::OK);
    if (*pull == Pull::kMessage) {
      CleanTexts(message_);
      return this->StartWrite(&message_);
    }
    waiting_ = true;
    ticket_ = core_.journal.WaitForNews(source_->topic(), [this, alive = alive_] {
      if (*alive && waiting_) PullNext();
    });
  }
  void FinishOnce(grpc::Status status) {
    if (finished_) return;
    finished_ = true;
    core_.journal.StopWaiting(source_->topic(), ticket_);
    this->Finish(std::move(status));
  }

  const TaskPoster loop_;
  Core& core_;
  const CallMark mark_;
  std::unique_ptr<StreamSource<Message>> source_;
  Message message_;
  // The journal may hold a wake-up of a stream that is over.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int64_t ticket_ = 0;  // of the newest wait
  bool waiting_ = false, cancelled_ = false, finished_ = false;
};

}  // namespace motley::coordinator
