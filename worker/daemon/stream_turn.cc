#include "worker/daemon/stream_turn.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace motley::worker {

StreamTurn Decide(absl::Duration now, const StreamState& state) {
  const absl::Duration silent_at = state.last_heard + state.patience;
  if (now > silent_at) {
    return {StreamAction::kGiveUp,
            absl::StrFormat("it has said nothing for %.1f s: is it stopped or overloaded, or the way from it closed?",
                            absl::ToDoubleSeconds(now - state.last_heard))};
  }
  if (now >= state.stop_at) return {StreamAction::kGiveUp, "this worker ends"};
  absl::Duration next = std::min(silent_at, state.stop_at);
  if (state.welcomed && !state.said_goodbye && !state.writing) {
    if (now >= state.next_heartbeat) return {StreamAction::kSendHeartbeat};
    if (state.has_reports) return {StreamAction::kSendReport};
    if (state.stop_at != absl::InfiniteDuration()) return {StreamAction::kSayGoodbye};
    next = std::min(next, state.next_heartbeat);
  }
  // A millisecond more: "longer than" is the rule.
  return {StreamAction::kWait, "", std::max(next - now, absl::ZeroDuration()) + absl::Milliseconds(1)};
}

}  // namespace motley::worker
