#include "worker/daemon/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"
#include "common/wire/session.h"

namespace motley::worker {
namespace {

constexpr int kMaxMessageBytes = 64 << 20;
constexpr absl::Duration kGoodbye = absl::Seconds(1);
constexpr int kRedialMs = 500;  // of one channel, while it is waited for
constexpr absl::Duration kDialTurn = absl::Milliseconds(50);
constexpr absl::Duration kOthersMayBeLate = absl::Milliseconds(300);
constexpr absl::Duration kLookAfter = absl::Seconds(1);  // one that is there answers before, or is busy
constexpr absl::Duration kShortestLease = absl::Milliseconds(300);

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments = DirectArguments();
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kRedialMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kRedialMs);
  // No keepalive: the coordinator answers heartbeats, and who does not is given up within a lease.
  if (credentials == nullptr) return OpenChannel(address, arguments);
  ExpectCoordinator(arguments);
  return OpenChannel(address, arguments, credentials);
}

// What it carries lasts, and a coordinator whose machine is gone says nothing.
constexpr int kKeepaliveMs = 20000, kKeepaliveAnswerMs = 10000;

ChannelOpener OpenerBeside(const SessionConfig::Credentials& credentials, const std::string& target) {
  return [credentials, target]() -> absl::StatusOr<std::shared_ptr<grpc::Channel>> {
    grpc::ChannelArguments arguments = DirectArguments();
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveAnswerMs);
    if (!credentials) return OpenChannel(target, arguments);
    MOTLEY_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> own,
                            credentials(std::make_shared<ShownCertificate>()));
    ExpectCoordinator(arguments);
    return OpenChannel(target, arguments, own);
  };
}

// gRPC does not say why a handshake failed.
constexpr char kNotByTls[] =
    "it answers, but no session by TLS comes about: is the address workers.listen of the coordinator of this node's cluster, is "
    "this node still a member ('motley nodes' there says so), and are the clocks of both machines right?";
constexpr char kNotByPlaintext[] =
    "it answers, but no session comes about: is the address workers.listen of a coordinator? One with workers.tls = true wants a "
    "certificate, whose folder worker.identity names";

}  // namespace

Session::Session(SessionConfig config, Handler handler, const Clock& clock, Outbox& outbox)
    : config_(std::move(config)), handler_(std::move(handler)), clock_(clock), outbox_(outbox), thread_([this] { Run(); }) {}

Session::~Session() {
  stopping_.Notify();
  outbox_.Wake();
  thread_.join();
}

// The name belongs to another living worker, or this one speaks another protocol or is no member: trying again would not help. A
// worker that was welcome before is let in again as soon as the coordinator has noticed that the old stream is gone.
bool Session::IsRefusal(const absl::Status& status) const {
  if (absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status) ||
      absl::IsUnauthenticated(status) || absl::IsUnimplemented(status)) {
    return true;
  }
  return absl::IsAlreadyExists(status) && !ever_welcomed_;
}

bool Session::WaitBeforeNext(absl::Duration pause) {
  const absl::Duration end = clock_.Now() + pause;
  while (!stopping_.HasBeenNotified() && clock_.Now() < end) outbox_.Wait(end - clock_.Now(), /*for_reports=*/false);
  return !stopping_.HasBeenNotified();
}

void Session::SayOnce(const std::string& where, const std::string& reason) {
  if (reason == last_reason_) return;
  LogWarning(absl::StrCat("no session with the coordinator at ", where, ": ", reason, "; trying again until it is there"));
  last_reason_ = reason;
}

void Session::Run() {
  absl::Duration pause = config_.first_pause;
  while (true) {
    bool welcomed = false;
    const absl::StatusOr<Way> way = Dial();
    const absl::Status status = way.ok() ? RunStream(*way, &welcomed) : way.status();
    const std::string where = way.ok() ? way->address : Everywhere();
    if (way.ok()) first_ = (first_ + 1) % config_.coordinators.size();  // who was tried last comes last
    if (stopping_.HasBeenNotified()) return;
    // Whoever was welcome is no wrong configuration: a new start, without this one's memory and maybe of a new version, may help.
    if (IsRefusal(status)) {
      const bool for_good = absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);  // it was forgotten, say
      const absl::StatusCode code = ever_welcomed_ && !for_good ? absl::StatusCode::kAborted : status.code();
      // Without a way nobody was asked: it is this node's own files that say so.
      const std::string who = way.ok() ? absl::StrCat("the coordinator at ", where, " refused this worker: ")
                                       : absl::StrCat("this worker cannot ask the coordinator at ", where, " to let it in: ");
      return handler_.on_refused(absl::Status(code, absl::StrCat(who, std::string(status.message()))));
    }
    const std::string reason(status.message());
    if (welcomed) {
      handler_.on_disconnected(reason);
      pause = config_.first_pause;
      last_reason_.clear();
    }
    SayOnce(where, reason);
    if (!WaitBeforeNext(pause)) return;
    pause = std::min(2 * pause, config_.longest_pause);
  }
}

absl::StatusOr<std::vector<Session::Way>> Session::OpenWays() {
  std::vector<std::string> addresses = config_.coordinators;
  std::rotate(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(first_), addresses.end());
  const std::vector<DialTargets> found = LookUp(addresses, clock_, kNamesPatience, stopping_);
  std::vector<Way> ways;
  not_known_.clear();
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (!found[i].trouble.empty()) not_known_.push_back(found[i].trouble);
    for (const std::string& target : found[i].targets) {
      Way way{addresses[i], target, std::make_shared<ShownCertificate>(), nullptr};
      std::shared_ptr<grpc::ChannelCredentials> credentials;
      if (config_.credentials) {
        MOTLEY_ASSIGN_OR_RETURN(credentials, config_.credentials(way.shown));
      }
      way.channel = NewChannel(target, credentials);
      ways.push_back(std::move(way));
    }
  }
  return ways;
}

std::string Session::Everywhere() const { return absl::StrJoin(config_.coordinators, ", "); }

std::string Session::WhyNobody(const DialLook& look) const {
  std::vector<std::string> parts = not_known_;
  for (std::string& trouble : look.TroublesBeside(Everywhere())) parts.push_back(std::move(trouble));
  if (!look.SomeoneAnswers() && !config_.instead.empty()) parts.push_back(config_.instead);
  if (look.SomeoneAnswers()) parts.push_back(config_.credentials ? kNotByTls : kNotByPlaintext);
  std::sort(parts.begin(), parts.end());  // a name service that gives another order says nothing new
  return absl::StrJoin(parts, "; ");
}

absl::StatusOr<Session::Way> Session::Dial() {
  MOTLEY_ASSIGN_OR_RETURN(std::vector<Way> ways, OpenWays());
  if (ways.empty()) return absl::UnavailableError(absl::StrJoin(not_known_, "; "));
  const absl::Duration begin = clock_.Now(), end = begin + (config_.credentials ? config_.tls_timeout : config_.connect_timeout);
  std::optional<DialLook> look;
  absl::Duration settled = absl::InfiniteDuration();  // until when others than the first to answer may still do so
  while (true) {
    const Answers answers = LookAt(ways);
    if (answers.best != nullptr && (answers.all_known || clock_.Now() >= settled)) {
      first_ = static_cast<size_t>(std::find(config_.coordinators.begin(), config_.coordinators.end(), answers.best->address) -
                                   config_.coordinators.begin());
      return std::move(*answers.best);
    }
    if (answers.best != nullptr && settled == absl::InfiniteDuration()) settled = clock_.Now() + kOthersMayBeLate;
    if (stopping_.HasBeenNotified()) return absl::CancelledError("stopping");
    if (!look && clock_.Now() - begin >= std::min(kLookAfter, end - begin)) {
      std::vector<std::string> targets;
      for (const Way& way : ways) targets.push_back(way.target);
      look.emplace(std::move(targets), clock_);
    }
    if (look && look->done()) {
      const std::string why = WhyNobody(*look);
      if (clock_.Now() >= end) return absl::UnavailableError(why);
      if (!look->SomeoneAnswers()) SayOnce(Everywhere(), why);  // soon: somebody reads it who waits for the node
    }
    // In short waits, so that a stop is not late and nobody's wall clock matters; each gets on only while it is waited for.
    for (const Way& way : ways) {
      if (way.channel->GetState(false) == GRPC_CHANNEL_READY) continue;
      (void)way.channel->WaitForConnected(std::chrono::system_clock::now() +
                                          absl::ToChronoMicroseconds(kDialTurn / static_cast<int>(ways.size())));
    }
  }
}

Session::Answers Session::LookAt(std::vector<Way>& ways) {
  Answers answers;
  answers.all_known = true;
  int64_t highest = -1;
  for (Way& way : ways) {
    const grpc_connectivity_state state = way.channel->GetState(/*try_to_connect=*/true);
    answers.all_known = answers.all_known && (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_TRANSIENT_FAILURE);
    if (state != GRPC_CHANNEL_READY) continue;
    const std::optional<Certificate> shown = way.shown->Get();
    const int64_t term = shown ? TermOf(*shown).value_or(Term()).number : 0;
    if (term > highest) highest = term, answers.best = &way;
  }
  return answers;
}

absl::Status Session::RunStream(const Way& way, bool* welcomed) {
  const auto stream = CoordinatorStream::Open(way.channel, handler_.hello(), [this] { outbox_.Wake(); });
  StreamState state;
  state.last_heard = clock_.Now();
  state.patience = config_.welcome_timeout;
  std::string given_up;
  while (true) {
    while (std::optional<v1::CoordinatorMessage> message = stream->TakeMessage()) {
      if (!given_up.empty()) continue;
      const absl::Status followed = Handle(*message, way, state);
      if (followed.ok()) continue;
      given_up = std::string(followed.message());
      stream->Cancel();
    }
    *welcomed = state.welcomed;
    if (std::optional<absl::Status> end = stream->TakeEnd()) {
      std::optional<WorkerReport> unsent = stream->TakeUnsent();
      if (unsent && !std::holds_alternative<HeartbeatReport>(*unsent)) outbox_.PutBack(*std::move(unsent));
      return given_up.empty() ? *end : absl::UnavailableError(given_up);
    }
    const absl::Duration now = clock_.Now();
    state.writing = stream->writing();
    if (state.welcomed && outbox_.size() == 0) SayWhatWasDropped();
    state.has_reports = outbox_.size() > 0;
    if (stopping_.HasBeenNotified()) state.stop_at = std::min(state.stop_at, now + kGoodbye);
    // What was given up is only waited for.
    const StreamTurn turn = given_up.empty() ? Decide(now, state) : StreamTurn();
    switch (turn.action) {
      case StreamAction::kWait:
        outbox_.Wait(turn.wait, /*for_reports=*/state.welcomed && !state.writing && given_up.empty());
        break;
      case StreamAction::kSendHeartbeat:
        state.next_heartbeat = now + heartbeat_;
        stream->Write(HeartbeatReport{absl::ToUnixMillis(clock_.WallNow()), handler_.doing ? handler_.doing() : ""});
        if (handler_.on_heartbeat) {
          if (std::optional<WorkerReport> more = handler_.on_heartbeat()) outbox_.Push(*std::move(more));
        }
        break;
      case StreamAction::kSendReport:
        if (std::optional<WorkerReport> report = outbox_.TryPop()) stream->Write(*std::move(report));
        break;
      case StreamAction::kSayGoodbye:
        state.said_goodbye = true;
        stream->SayGoodbye();
        break;
      case StreamAction::kGiveUp:
        given_up = turn.reason;
        stream->Cancel();
        break;
    }
  }
}

void Session::SayWhatWasDropped() {
  for (LogReport& line : outbox_.TakeDropped()) {
    LogWarning(absl::StrCat("job ", line.job.value(), ": ", line.text));
    line.source = "worker";
    line.unix_ms = absl::ToUnixMillis(clock_.WallNow());
    outbox_.Push(std::move(line));
  }
}

absl::Status Session::Handle(const v1::CoordinatorMessage& message, const Way& way, StreamState& state) {
  state.last_heard = clock_.Now();
  if (message.has_welcome()) {
    if (config_.follow) {
      const std::optional<Certificate> shown = way.shown->Get();
      if (!shown) return absl::UnavailableError("it showed no certificate");
      if (absl::Status followed = config_.follow(*shown); !followed.ok()) return followed;
    }
    state.welcomed = ever_welcomed_ = true;
    state.patience = std::max(absl::Milliseconds(message.welcome().lease_ms()), kShortestLease);
    heartbeat_ = state.patience / 3;
    state.next_heartbeat = state.last_heard;
    handler_.on_connected(wire::FromProto(message.welcome().store_mark()), message.welcome().key_id(), way.address,
                          OpenerBeside(config_.credentials, way.target));
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<CoordinatorCommand>> command = wire::FromProto(message);
  if (command.ok()) {
    if (*command) handler_.on_command(**std::move(command));
    return absl::OkStatus();
  }
  LogError(absl::StrCat("a message of the coordinator cannot be read: ", command.status().message()));
  for (WorkerReport& refusal : wire::Refusals(message, command.status())) outbox_.Push(std::move(refusal));
  return absl::OkStatus();
}

}  // namespace motley::worker
