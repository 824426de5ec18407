#include "coordinator/rpc/carries.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/duration_text.h"
#include "common/base/job_uid.h"
#include "coordinator/epoch/carrying.h"
#include "coordinator/rpc/caller.h"
#include "coordinator/rpc/permission.h"
#include "coordinator/rpc/status.h"

namespace motley::coordinator {
namespace {

constexpr char kCarryMethod[] = "/motley.v1.Motley/Carry";
// Nothing moves, or no node comes.
constexpr absl::Duration kCarrySilence = absl::Seconds(60);
// Of a node whose disk syncs what it took.
constexpr absl::Duration kTakersSilence = absl::Minutes(10);
constexpr absl::Duration kSilenceTick = absl::Seconds(1);
// Parts have 128 KiB.
constexpr size_t kMostPartBytes = size_t{1} << 20;

// What somebody sends who was read from.
bool IsAnswer(const v1::CarryMessage& message) {
  return message.has_answered() || (message.has_part() && message.part().bytes().size() <= kMostPartBytes);
}

}  // namespace

// Everything but the callbacks' posts happens on the thread of the carries. It lives until gRPC is done with it.
class Carries::End : public Reactor {
 public:
  End(Carries& carries, BusyPeers& busy, grpc::CallbackServerContext& context)
      : carries_(carries), context_(context), mark_(busy, context.peer()), moved_(carries.clock_.Now()) {}
  // Once, before gRPC has it.
  void Start() {
    carries_.thread_.Post([this] {
      carries_.ends_.insert(this);
      const absl::Status may = MayBegin();
      may.ok() ? ReadNext() : FinishWith(may);
    });
  }
  void OnReadDone(bool ok) override {
    carries_.thread_.Post([this, ok] { Read(ok); });
  }
  void OnWriteDone(bool ok) override {
    carries_.thread_.Post([this, ok] { Wrote(ok); });
  }
  void OnCancel() override {
    carries_.thread_.Post([this] { Break(absl::CancelledError("cancelled")); });
  }
  void OnDone() override {
    carries_.thread_.Post([this] {
      Break(absl::CancelledError("over"));
      carries_.ends_.erase(this);
      delete this;
    });
  }

  // Nothing has moved for long: who does not even take its end is not waited for.
  void EndIfSilent(absl::Duration now) {
    const absl::Duration silence = other_ == nullptr ? Silence() : std::max(Silence(), other_->Silence());
    if (now - moved_ <= silence) return;
    if (!end_) Break(absl::UnavailableError(WhySilent()));
    SayEnd();
    // Nor is who takes no more of what was said before it.
    if (writing_) context_.TryCancel();
  }
  // Both ends, each with what it is told.
  void Break(const absl::Status& why) {
    if (End* const other = std::exchange(other_, nullptr)) {
      other->other_ = nullptr;
      other->FinishWith(absl::IsCancelled(why) ? absl::UnavailableError(WhyGone()) : why);
    }
    FinishWith(why);
  }

 protected:
  virtual absl::Status MayBegin() = 0;
  // Its first message has come.
  virtual void Begin(v1::CarryMessage& first) = 0;
  virtual bool MayCarry(const v1::CarryMessage& message) const = 0;
  virtual std::string WhyGone() const = 0;  // told to the other end when this one goes
  virtual std::string WhySilent() const = 0;
  virtual absl::Duration Silence() const { return kCarrySilence; }
  virtual void OnFinish() {}
  // What this end gives.
  virtual void CountPart(double bytes) = 0;

  void Join(End& other) {
    other_ = &other;
    other.other_ = this;
    moved_ = other.moved_ = carries_.clock_.Now();
  }
  void Send(v1::CarryMessage* message) {
    outgoing_.Clear();
    outgoing_.Swap(message);
    writing_ = true;
    StartWrite(&outgoing_);
  }
  void ReadNext() {
    if (!end_ && !half_closed_) StartRead(&incoming_);
  }
  // Behind what is being written.
  void FinishWith(const absl::Status& status) {
    if (end_) return;
    end_ = status;
    OnFinish();
    if (!writing_) SayEnd();
  }

  Carries& carries_;

 private:
  void SayEnd() {
    if (!std::exchange(said_end_, true)) Finish(ToGrpc(*end_));
  }
  void Read(bool ok) {
    if (end_) return;
    if (!ok) {
      half_closed_ = true;
      if (!begun_) Break(absl::InvalidArgumentError("a carry begins with a message that says what is carried"));
      return;
    }
    if (!std::exchange(begun_, true)) return Begin(incoming_);
    if (other_ == nullptr) return;  // it is being ended
    if (incoming_.has_end()) {
      const int code = incoming_.end().code();
      const bool known = code >= 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
      return Break(absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                                CleanLine(incoming_.end().error())));
    }
    if (!MayCarry(incoming_)) return Break(absl::InvalidArgumentError("a message that this end of a carry cannot send"));
    moved_ = other_->moved_ = carries_.clock_.Now();
    if (incoming_.has_part()) CountPart(static_cast<double>(incoming_.part().bytes().size()));
    other_->Send(&incoming_);
  }
  // The other end may say more.
  void Wrote(bool ok) {
    writing_ = false;
    if (end_) return SayEnd();
    if (!ok) return Break(absl::CancelledError("the connection broke"));
    if (other_ == nullptr) return;
    moved_ = other_->moved_ = carries_.clock_.Now();
    other_->ReadNext();
  }

  grpc::CallbackServerContext& context_;
  const CallMark mark_;
  v1::CarryMessage incoming_, outgoing_;
  End* other_ = nullptr;
  absl::Duration moved_;  // steady
  bool begun_ = false, half_closed_ = false, writing_ = false, said_end_ = false;
  std::optional<absl::Status> end_;  // what this end is told; nothing else is said then
};

class Carries::WorkersEnd : public End {
 public:
  WorkersEnd(Carries& carries, BusyPeers& busy, grpc::CallbackServerContext& context)
      : End(carries, busy, context), caller_(CallerOf(context)) {}
  // Whether its certificate may be that node's; without TLS it is a worker of this machine, or of a trusted network.
  bool MayBe(const NodeName& node) const {
    return caller_.ok() && (caller_->key ? caller_->key->node == node : !caller_->by_tls);
  }
  // `takes`: it reads what the person gives.
  void BeNode(const NodeName& node, bool takes) { node_ = node, takes_ = takes; }

 private:
  // Who shows no certificate is not listened to.
  absl::Status MayBegin() override {
    if (!caller_.ok()) return caller_.status();
    return caller_->by_tls && !caller_->key ? absl::UnauthenticatedError("no certificate was shown") : absl::OkStatus();
  }
  void Begin(v1::CarryMessage& first) override;
  bool MayCarry(const v1::CarryMessage& message) const override {
    return takes_ ? message.has_read() || message.has_busy() : IsAnswer(message);
  }
  absl::Duration Silence() const override { return takes_ ? kTakersSilence : kCarrySilence; }
  std::string WhyGone() const override { return absl::StrCat("node ", node_.value(), " broke it off"); }
  std::string WhySilent() const override { return "nothing was carried for long"; }
  void CountPart(double bytes) override { carries_.core_.metrics.files_bytes.Add({{"purpose", kBytesOfExports}}, bytes); }

  const absl::StatusOr<Caller> caller_;
  NodeName node_;
  bool takes_ = false;
};

class Carries::PersonsEnd : public End {
 public:
  PersonsEnd(Carries& carries, BusyPeers& busy, grpc::CallbackServerContext& context, Person person)
      : End(carries, busy, context), person_(std::move(person)) {}
  ~PersonsEnd() override { --carries_.persons_; }

  // Who has what was asked for, or why nobody.
  void Answer(const absl::StatusOr<CarryPlace>& place) {
    if (!place.ok()) return Break(place.status());
    place_ = *place;
  }
  // The node that has it, which was told to come.
  const std::optional<CarryPlace>& place() const { return place_; }
  bool gives() const { return gives_; }
  void JoinNode(End& worker) {
    carries_.waiting_.erase(id_);
    Join(worker);
    v1::CarryMessage begun;
    begun.mutable_begun()->set_checkpoint(place_->checkpoint);
    begun.mutable_begun()->set_manifest_sha256(place_->manifest_digest);
    begun.mutable_begun()->set_mark(place_->mark);
    begun.mutable_begun()->set_node(place_->node.value());
    Send(&begun);
    ReadNext();
  }

 private:
  absl::Status MayBegin() override {
    if (++carries_.persons_ <= kMostCarries) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(kMostCarries, " carries are under way; try again later"));
  }
  void Begin(v1::CarryMessage& first) override;
  bool MayCarry(const v1::CarryMessage& message) const override { return gives_ ? IsAnswer(message) : message.has_read(); }
  std::string WhyGone() const override { return "who asked is gone"; }
  std::string WhySilent() const override {
    if (!place_) return "the nodes did not say in time who has it";
    return absl::StrCat("node ", place_->node.value(), " carried nothing for ", DurationText(kCarrySilence));
  }
  void CountPart(double bytes) override { carries_.core_.metrics.files_bytes.Add({{"purpose", kBytesOfUploads}}, bytes); }
  void OnFinish() override {
    carries_.waiting_.erase(id_);
    if (!id_.empty()) carries_.loop_.Post([&core = carries_.core_, id = id_] { OnCarryOver(core, id); });
  }

  const Person person_;
  std::string id_;
  bool gives_ = false;  // an input
  std::optional<CarryPlace> place_;
};

void Carries::PersonsEnd::Begin(v1::CarryMessage& first) {
  if (!first.has_begin()) return Break(absl::InvalidArgumentError("the first message of a carry must be begin"));
  const absl::StatusOr<JobUid> id = NewJobUid();
  if (!id.ok()) return Break(id.status());
  id_ = id->value();
  gives_ = !first.begin().input().empty();
  carries_.waiting_[id_] = this;
  const auto answer = [carries = &carries_, id = id_](absl::StatusOr<CarryPlace> place) {
    carries->thread_.Post([carries, id, place = std::move(place)] {
      const auto found = carries->waiting_.find(id);
      if (found != carries->waiting_.end()) found->second->Answer(place);
    });
  };
  PendingCarry carry;
  carry.wish = {JobId(first.begin().job_id()), first.begin().input(), first.begin().checkpoint(), first.begin().file(), {}};
  carry.wish.path = first.begin().path();
  for (const std::string& node : first.begin().on_nodes()) carry.wish.on_nodes.insert(NodeName(node));
  for (const std::string& node : first.begin().not_from()) carry.wish.not_from.insert(NodeName(node));
  carry.answer = answer;
  carries_.loop_.Post([&core = carries_.core_, person = person_, id = id_, carry = std::move(carry)] {
    if (core.config.owners) {
      const absl::Status may = CheckPermission(core.state, person, kCarryMethod, carry.wish.job.value());
      Audit(person, kCarryMethod, carry.wish.job.value(), may);
      if (!may.ok()) return carry.answer(may);
    }
    BeginCarry(core, id, carry);
  });
}

void Carries::WorkersEnd::Begin(v1::CarryMessage& first) {
  const auto waits = carries_.waiting_.find(first.carry_id());
  if (waits == carries_.waiting_.end() || !waits->second->place()) {
    return Break(absl::NotFoundError("nobody waits for this carry any more"));
  }
  const NodeName node = waits->second->place()->node;
  if (!MayBe(node)) {
    return Break(
        absl::PermissionDeniedError(absl::StrCat("this carry is node ", node.value(), "'s, whose certificate was not shown")));
  }
  BeNode(node, waits->second->gives());
  waits->second->JoinNode(*this);
}

Carries::Carries(TaskPoster loop, Core& core) : loop_(loop), core_(core) {
  thread_.Start([this] { return EndSilent(); });
}
Carries::~Carries() { Stop(); }

absl::Duration Carries::EndSilent() {
  const absl::Duration now = clock_.Now();
  for (End* const end : std::set<End*>(ends_)) end->EndIfSilent(now);
  return kSilenceTick;
}

Carries::Reactor* Carries::ForPerson(grpc::CallbackServerContext& context, BusyPeers& busy, const Person& person) {
  auto* const end = new PersonsEnd(*this, busy, context, person);
  end->Start();
  return end;
}
Carries::Reactor* Carries::ForWorker(grpc::CallbackServerContext& context, BusyPeers& busy) {
  auto* const end = new WorkersEnd(*this, busy, context);
  end->Start();
  return end;
}

}  // namespace motley::coordinator
