#include "coordinator/rpc/report_limits.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/cut_text.h"
#include "coordinator/core/journal.h"

namespace motley::coordinator {
namespace {

using v1::WorkerMessage;

struct Limit {
  WorkerMessage::MessageCase kind;
  size_t bytes;
};

// Small messages come at the rate of steps; results come once. Rendezvous values hold the addresses of a rank's peers, 140 bytes
// each; a rank that is ready names the members of its groups and whom it hands over to.
constexpr Limit kLimits[] = {
    {WorkerMessage::kHello, 1 << 20},
    {WorkerMessage::kHeartbeat, 1 << 10},
    {WorkerMessage::kStorageCheckResult, 64 << 10},
    {WorkerMessage::kProfileResult, kMaxReportBytes},
    {WorkerMessage::kRankEvent, 256 << 10},
    {WorkerMessage::kStepReport, 4 << 10},
    {WorkerMessage::kKvSet, 256 << 10},
    {WorkerMessage::kKvGet, 4 << 10},
    {WorkerMessage::kPublishRequest, 4 << 10},
    {WorkerMessage::kCheckpointPublished, 16 << 10},
    {WorkerMessage::kLog, 16 << 10},
    {WorkerMessage::kLeaving, 1 << 10},
    {WorkerMessage::kReachResult, 4 << 20},
    {WorkerMessage::kCheckpointFailed, 16 << 10},
    {WorkerMessage::kTraceResult, kMaxReportBytes},
    {WorkerMessage::kCardState, 8 << 10},
    {WorkerMessage::kRenewalRequest, 16 << 10},
    {WorkerMessage::kHoldings, kMaxReportBytes},
    {WorkerMessage::kFetchProgress, 4 << 10},
};
constexpr size_t kOtherBytes = 64 << 10;  // a kind of a newer worker

void Cut(std::string* text) {
  if (text->size() > kMaxTextBytes) *text = CutText(*text, kMaxTextBytes);
}

void CutTexts(WorkerMessage* message) {
  switch (message->message_case()) {
    case WorkerMessage::kLog:
      return Cut(message->mutable_log()->mutable_text());
    case WorkerMessage::kRankEvent:
      for (v1::TransportUse& use : *message->mutable_rank_event()->mutable_transports()) {
        Cut(use.mutable_why_not_nccl());
        if (!use.has_nccl_links()) continue;
        for (std::string& kind : *use.mutable_nccl_links()->mutable_kinds()) Cut(&kind);
        for (std::string& interface : *use.mutable_nccl_links()->mutable_interfaces()) Cut(&interface);
      }
      return Cut(message->mutable_rank_event()->mutable_message());
    case WorkerMessage::kHoldings:
      return Cut(message->mutable_holdings()->mutable_error());
    case WorkerMessage::kFetchProgress:
      return Cut(message->mutable_fetch_progress()->mutable_error());
    case WorkerMessage::kStorageCheckResult:
      return Cut(message->mutable_storage_check_result()->mutable_error());
    case WorkerMessage::kProfileResult:
      return Cut(message->mutable_profile_result()->mutable_error());
    case WorkerMessage::kCheckpointFailed:
      return Cut(message->mutable_checkpoint_failed()->mutable_message());
    case WorkerMessage::kTraceResult:
      return Cut(message->mutable_trace_result()->mutable_error());
    default:
      return;
  }
}

}  // namespace

absl::Status LimitReport(WorkerMessage* message) {
  CutTexts(message);
  const auto* limit = std::find_if(std::begin(kLimits), std::end(kLimits),
                                   [message](const Limit& l) { return l.kind == message->message_case(); });
  const size_t most = limit == std::end(kLimits) ? kOtherBytes : limit->bytes;
  const size_t bytes = message->ByteSizeLong();
  if (bytes <= most) return absl::OkStatus();
  const auto* field = WorkerMessage::descriptor()->FindFieldByNumber(message->message_case());
  return absl::ResourceExhaustedError(absl::StrCat("a ", field == nullptr ? "message of an unknown kind" : field->name(), " of ",
                                                   bytes, " bytes; at most ", most, " are taken"));
}

}  // namespace motley::coordinator
