#include "coordinator/rpc/worker_service.h"

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cut_text.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/wire/session.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/members/registry.h"
#include "coordinator/members/reports.h"
#include "coordinator/rpc/caller.h"
#include "coordinator/rpc/join_node.h"
#include "coordinator/rpc/reactors.h"
#include "coordinator/rpc/report_limits.h"
#include "coordinator/rpc/status.h"

namespace motley::coordinator {
namespace {

// A worker that takes nothing while this many messages wait is as good as lost.
constexpr size_t kMaxQueued = 20000;
// A message keeps the memory of the largest that it held; one above this is freed.
constexpr size_t kKeptMessageBytes = 64 << 10;

// Everything but the three callbacks' posts happens on the loop. The next message is read after the last one was handled, so
// a worker cannot flood the loop.
class SessionReactor : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  SessionReactor(TaskPoster loop, Core& core, BusyPeers& busy, const grpc::CallbackServerContext& context)
      : loop_(loop), core_(core), mark_(busy, context.peer()), caller_(CallerOf(context)) {
    link_ = std::make_shared<Link>(this, caller_.ok() ? *caller_ : Caller());
    // Who shows no certificate is not listened to: it would hold a connection that counts as busy.
    if (IsKnown()) {
      StartRead(&incoming_);
    } else {
      loop_.Post([this] { RefuseUnknown(); });
    }
  }

  void OnReadDone(bool ok) override {
    unread_ = ok;
    loop_.Post([this, ok] { ok ? HandleMessage() : End(absl::UnavailableError("the worker closed its connection")); });
  }
  void OnWriteDone(bool ok) override {
    loop_.Post([this, ok] {
      writing_ = false;
      if (!ok) return End(absl::UnavailableError("the connection broke"));
      outgoing_.pop_front();
      WriteNext();
    });
  }
  void OnCancel() override {
    loop_.Post([this] { End(absl::UnavailableError("the connection broke")); });
  }
  void OnDone() override {
    loop_.Post([this] {
      End(absl::UnavailableError("the connection broke"));
      delete this;
    });
  }

 private:
  // What the core holds; it may outlive the stream by a turn of the loop.
  struct Link : public WorkerLink {
    Link(SessionReactor* reactor, Caller caller) : session(reactor), caller(std::move(caller)) {}
    void Send(CoordinatorCommand command) override {
      if (session != nullptr) session->Enqueue(wire::ToProto(command));
    }
    bool HasUnread() const override { return session != nullptr && session->unread_; }
    void Close(absl::Status status) override {
      if (session != nullptr) session->FinishWith(std::move(status));
    }
    std::string peer_address() const override { return caller.host; }
    std::optional<NodeKey> identity() const override { return caller.key; }
    SessionReactor* session;
    const Caller caller;
  };

  void HandleMessage() {
    unread_ = false;
    if (finishing_) return;
    if (absl::Status status = LimitReport(&incoming_); !status.ok()) {
      LogWarning(absl::StrCat("session of ", node_ ? node_->value() : "a worker that said no hello",
                              " ended: ", std::string(status.message())));
      FinishWith(status);  // before the loss of the node, which would close the stream with a text of its own
      return End(status);
    }
    if (!node_) {
      Greet();
    } else if (std::optional<WorkerReport> report = wire::FromProto(incoming_)) {
      HandleReport(core_, *node_, *report);
    }
    if (incoming_.SpaceUsedLong() > kKeptMessageBytes) incoming_ = v1::WorkerMessage();
    if (!finishing_) StartRead(&incoming_);
  }

  bool IsKnown() const { return caller_.ok() && (!caller_->by_tls || caller_->key); }
  // Not noted as a refused worker: its name would be whatever a stranger says.
  void RefuseUnknown() {
    if (!caller_.ok()) return FinishWith(caller_.status());
    FinishWith(
        absl::UnauthenticatedError("no certificate was shown; a node that joined has one (motley-worker --join TOKEN), and "
                                   "worker.identity names its folder"));
  }

  void Greet() {
    if (!incoming_.has_hello()) return FinishWith(absl::InvalidArgumentError("the first message of a session must be hello"));
    absl::StatusOr<NodeDescription> description = wire::FromProto(incoming_.hello());
    absl::Status status = description.status();
    if (status.ok()) {
      v1::CoordinatorMessage welcome;
      welcome.mutable_welcome()->set_lease_ms(absl::ToInt64Milliseconds(core_.config.lease));
      *welcome.mutable_welcome()->mutable_store_mark() = wire::ToProto(core_.Mark());
      welcome.mutable_welcome()->set_key_id(core_.numbers.id());
      Enqueue(std::move(welcome));
      status = Admit(core_, *description, link_);
    }
    if (!status.ok()) {
      NoteRefused(core_, incoming_.hello().node(), status);
      LogWarning(absl::StrCat("worker '", incoming_.hello().node().substr(0, 80), "' refused: ", std::string(status.message())));
      return FinishWith(std::move(status));
    }
    node_ = description->name;
    WriteNext();
    Drive(core_);
  }

  void Enqueue(v1::CoordinatorMessage message) {
    if (finishing_ || overflowed_) return;
    if (outgoing_.size() >= kMaxQueued) {
      // Later: whoever sends is in the middle of changing the state that the end of a session changes, too. The stream is not
      // deleted before that, because it has not been finished yet.
      overflowed_ = true;
      loop_.Post([this] { End(absl::ResourceExhaustedError("the worker takes no messages")); });
      return;
    }
    outgoing_.push_back(std::move(message));
    WriteNext();
  }

  // Writes wait until the worker is admitted: one that is refused gets a status and nothing else.
  void WriteNext() {
    if (writing_ || finishing_ || outgoing_.empty() || !node_) return;
    writing_ = true;
    StartWrite(&outgoing_.front());
  }

  // The stream is over for the core as well.
  void End(const absl::Status& status) {
    if (node_ && !lost_) {
      lost_ = true;
      auto current = core_.links.find(*node_);
      // Another session may have taken the name already.
      if (current != core_.links.end() && current->second == link_) {
        Disconnect(core_, *node_, std::string(status.message()));
        Drive(core_);
      }
    }
    FinishWith(status);
  }
  void FinishWith(absl::Status status) {
    if (finishing_) return;
    finishing_ = true;
    link_->session = nullptr;
    Finish(ToGrpc(status));
  }

  const TaskPoster loop_;
  Core& core_;
  const CallMark mark_;
  const absl::StatusOr<Caller> caller_;
  std::shared_ptr<Link> link_;
  v1::WorkerMessage incoming_;
  std::deque<v1::CoordinatorMessage> outgoing_;  // the front one is being written while writing_
  std::optional<NodeName> node_;                 // set when admitted
  std::atomic<bool> unread_ = false;             // incoming_ waits for the loop
  bool writing_ = false, finishing_ = false, lost_ = false, overflowed_ = false;
};

}  // namespace

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* WorkerSessions::Session(
    grpc::CallbackServerContext* context) {
  context->set_compression_algorithm(GRPC_COMPRESS_GZIP);  // long programs are text that repeats itself
  return new SessionReactor(loop_, core_, busy_, *context);
}

grpc::ServerBidiReactor<v1::CarryMessage, v1::CarryMessage>* WorkerSessions::Carry(grpc::CallbackServerContext* context) {
  return carries_.ForWorker(*context, busy_);
}

grpc::ServerUnaryReactor* WorkerSessions::Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                               v1::JoinResponse* response) {
  return new UnaryReactor(loop_, busy_, *context, [this, context, request, response]() -> absl::Status {
    MOTLEY_ASSIGN_OR_RETURN(const Caller caller, CallerOf(*context));
    return coordinator::Join(core_, caller, *request, response);
  });
}

}  // namespace motley::coordinator
