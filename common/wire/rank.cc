// The socket's messages are made of the session's: both conversions go through it.
#include "common/wire/rank.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/wire/assignment.h"
#include "common/wire/session.h"

namespace motley::wire {

v1::ToRank ToProto(const RankCommand& command) {
  v1::ToRank out;
  if (const auto* start = std::get_if<StartCommand>(&command)) {
    *out.mutable_load() = ToProto(start->ranks.at(0));
    return out;
  }
  v1::CoordinatorMessage in = std::visit([](const auto& c) { return ToProto(CoordinatorCommand(c)); }, command);
  switch (in.message_case()) {
    case v1::CoordinatorMessage::kProfileRequest:
      out.mutable_profile()->Swap(in.mutable_profile_request());
      break;
    case v1::CoordinatorMessage::kStopEpoch:
      out.mutable_stop()->Swap(in.mutable_stop_epoch());
      break;
    case v1::CoordinatorMessage::kKvValue:
      out.mutable_kv_value()->Swap(in.mutable_kv_value());
      break;
    case v1::CoordinatorMessage::kPublishAnswer:
      out.mutable_publish_answer()->Swap(in.mutable_publish_answer());
      break;
    case v1::CoordinatorMessage::kTraceRequest:
      out.mutable_trace()->Swap(in.mutable_trace_request());
      break;
    default:
      break;
  }
  return out;
}

absl::StatusOr<RankCommand> FromProto(const v1::ToRank& message) {
  v1::CoordinatorMessage in;
  switch (message.message_case()) {
    case v1::ToRank::kLoad:
      *in.mutable_start_epoch()->add_ranks() = message.load();
      break;
    case v1::ToRank::kProfile:
      *in.mutable_profile_request() = message.profile();
      break;
    case v1::ToRank::kStop:
      *in.mutable_stop_epoch() = message.stop();
      break;
    case v1::ToRank::kKvValue:
      *in.mutable_kv_value() = message.kv_value();
      break;
    case v1::ToRank::kPublishAnswer:
      *in.mutable_publish_answer() = message.publish_answer();
      break;
    case v1::ToRank::kTrace:
      *in.mutable_trace_request() = message.trace();
      break;
    case v1::ToRank::MESSAGE_NOT_SET:
      return absl::InvalidArgumentError("a message for the rank of a kind that it does not know");
  }
  if (message.has_profile() && message.profile().ranks_size() != 1) {
    return absl::InvalidArgumentError("a rank's profile request must hold exactly its own assignment");
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::optional<CoordinatorCommand> command, FromProto(in));
  if (const auto* start = std::get_if<StartCommand>(&*command)) return RankCommand(*start);
  if (const auto* profile = std::get_if<ProfileCommand>(&*command)) return RankCommand(*profile);
  if (const auto* stop = std::get_if<StopCommand>(&*command)) return RankCommand(*stop);
  if (const auto* value = std::get_if<KvValueCommand>(&*command)) return RankCommand(*value);
  if (const auto* trace = std::get_if<TraceCommand>(&*command)) return RankCommand(*trace);
  return RankCommand(std::get<PublishAnswerCommand>(*command));
}

v1::FromRank ToProto(const RankMessage& message) {
  v1::FromRank out;
  if (const auto* progress = std::get_if<ProgressReport>(&message)) {
    out.mutable_progress()->set_epoch(progress->epoch.value());
    out.mutable_progress()->set_step(progress->step);
    out.mutable_progress()->set_instruction(progress->instruction);
    out.mutable_progress()->set_doing(progress->doing);
    return out;
  }
  v1::WorkerMessage in = ToProto(std::get<WorkerReport>(message));
  switch (in.message_case()) {
    case v1::WorkerMessage::kRankEvent:
      out.mutable_event()->Swap(in.mutable_rank_event());
      break;
    case v1::WorkerMessage::kStepReport:
      out.mutable_step()->Swap(in.mutable_step_report());
      break;
    case v1::WorkerMessage::kKvSet:
      out.mutable_kv_set()->Swap(in.mutable_kv_set());
      break;
    case v1::WorkerMessage::kKvGet:
      out.mutable_kv_get()->Swap(in.mutable_kv_get());
      break;
    case v1::WorkerMessage::kPublishRequest:
      out.mutable_publish_request()->Swap(in.mutable_publish_request());
      break;
    case v1::WorkerMessage::kCheckpointPublished:
      out.mutable_checkpoint_published()->Swap(in.mutable_checkpoint_published());
      break;
    case v1::WorkerMessage::kCheckpointFailed:
      out.mutable_checkpoint_failed()->Swap(in.mutable_checkpoint_failed());
      break;
    case v1::WorkerMessage::kProfileResult:
      out.mutable_profile_result()->Swap(in.mutable_profile_result());
      break;
    case v1::WorkerMessage::kLog:
      out.mutable_log()->Swap(in.mutable_log());
      break;
    case v1::WorkerMessage::kTraceResult:
      out.mutable_trace_result()->Swap(in.mutable_trace_result());
      break;
    default:
      break;  // what a rank never says
  }
  return out;
}

std::optional<RankMessage> FromProto(const v1::FromRank& message) {
  v1::WorkerMessage in;
  switch (message.message_case()) {
    case v1::FromRank::kProgress: {
      const v1::Progress& progress = message.progress();
      return ProgressReport{Epoch(progress.epoch()), progress.step(), progress.instruction(), progress.doing()};
    }
    case v1::FromRank::kEvent:
      *in.mutable_rank_event() = message.event();
      break;
    case v1::FromRank::kStep:
      *in.mutable_step_report() = message.step();
      break;
    case v1::FromRank::kKvSet:
      *in.mutable_kv_set() = message.kv_set();
      break;
    case v1::FromRank::kKvGet:
      *in.mutable_kv_get() = message.kv_get();
      break;
    case v1::FromRank::kPublishRequest:
      *in.mutable_publish_request() = message.publish_request();
      break;
    case v1::FromRank::kCheckpointPublished:
      *in.mutable_checkpoint_published() = message.checkpoint_published();
      break;
    case v1::FromRank::kCheckpointFailed:
      *in.mutable_checkpoint_failed() = message.checkpoint_failed();
      break;
    case v1::FromRank::kProfileResult:
      *in.mutable_profile_result() = message.profile_result();
      break;
    case v1::FromRank::kLog:
      *in.mutable_log() = message.log();
      break;
    case v1::FromRank::kTraceResult:
      *in.mutable_trace_result() = message.trace_result();
      break;
    case v1::FromRank::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  std::optional<WorkerReport> report = FromProto(in);
  if (!report) return std::nullopt;
  return RankMessage(*std::move(report));
}

}  // namespace motley::wire
