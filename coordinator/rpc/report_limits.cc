#include "coordinator/rpc/report_limits.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/cut_text.h"
#include "coordinator/core/journal.h"

namespace motley::coordinator {
namespace {

using Message = v1::WorkerMessage;

struct Limit {
  Message::MessageCase kind;
  size_t bytes;
};

// Small messages come at the rate of steps; results come once. Rendezvous values hold the addresses of a rank's peers, 140 bytes
// each; a rank that is ready names the members of its groups and whom it hands over to.
constexpr Limit kLimits[] = {
    {Message::kHello, 1 << 20},
    {Message::kHeartbeat, 1 << 10},
    {Message::kStorageCheckResult, 64 << 10},
    {Message::kProfileResult, kMaxReportBytes},
    {Message::kRankEvent, 256 << 10},
    {Message::kStepReport, 4 << 10},
    {Message::kKvSet, 256 << 10},
    {Message::kKvGet, 4 << 10},
    {Message::kPublishRequest, 4 << 10},
    {Message::kCheckpointPublished, 16 << 10},
    {Message::kLog, 16 << 10},
    {Message::kLeaving, 1 << 10},
    {Message::kReachResult, 4 << 20},
    {Message::kCheckpointFailed, 16 << 10},
    {Message::kTraceResult, kMaxReportBytes},
    {Message::kCardState, 8 << 10},
};
constexpr size_t kOtherBytes = 64 << 10;  // a kind of a newer worker

void Cut(std::string* text) {
  if (text->size() > kMaxTextBytes) *text = CutText(*text, kMaxTextBytes);
}

void CutTexts(Message* message) {
  switch (message->message_case()) {
    case Message::kLog:
      return Cut(message->mutable_log()->mutable_text());
    case Message::kRankEvent:
      for (v1::TransportUse& use : *message->mutable_rank_event()->mutable_transports()) Cut(use.mutable_why_not_nccl());
      return Cut(message->mutable_rank_event()->mutable_message());
    case Message::kStorageCheckResult:
      return Cut(message->mutable_storage_check_result()->mutable_error());
    case Message::kProfileResult:
      return Cut(message->mutable_profile_result()->mutable_error());
    case Message::kCheckpointFailed:
      return Cut(message->mutable_checkpoint_failed()->mutable_message());
    case Message::kTraceResult:
      return Cut(message->mutable_trace_result()->mutable_error());
    default:
      return;
  }
}

}  // namespace

absl::Status LimitReport(v1::WorkerMessage* message) {
  CutTexts(message);
  const auto* limit = std::find_if(std::begin(kLimits), std::end(kLimits),
                                   [message](const Limit& l) { return l.kind == message->message_case(); });
  const size_t most = limit == std::end(kLimits) ? kOtherBytes : limit->bytes;
  const size_t bytes = message->ByteSizeLong();
  if (bytes <= most) return absl::OkStatus();
  const auto* field = v1::WorkerMessage::descriptor()->FindFieldByNumber(message->message_case());
  return absl::ResourceExhaustedError(absl::StrCat("a ", field == nullptr ? "message of an unknown kind" : field->name(), " of ",
                                                   bytes, " bytes; at most ", most, " are taken"));
}

}  // namespace motley::coordinator
