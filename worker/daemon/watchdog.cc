#include "worker/daemon/watchdog.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace motley::worker {

std::string LastHeard(const WatchState& state) { return state.doing.empty() ? "" : "; last heard: " + state.doing; }

WatchDecision Decide(absl::Duration now, const WatchState& state, const WatchConfig& config) {
  const absl::Duration silence = now - state.last_word;
  const absl::Duration silence_limit = state.has_spoken ? config.silence_limit : state.first_progress;
  if (silence > silence_limit) {
    return {true, absl::StrFormat("no sign of life for %.1f s (limit %.1f s)%s: its process is stopped or the host starves it",
                                  absl::ToDoubleSeconds(silence), absl::ToDoubleSeconds(silence_limit), LastHeard(state))};
  }
  const absl::Duration still = now - state.last_advance;
  const absl::Duration usual = std::max(config.stuck_floor, config.stuck_steps * state.predicted_step);
  const absl::Duration stuck_limit = state.has_advanced ? usual : std::max(usual, state.first_progress);
  if (still > stuck_limit) {
    return {true,
            absl::StrFormat("no progress for %.1f s (limit %.1f s, predicted step %.3f s)%s", absl::ToDoubleSeconds(still),
                            absl::ToDoubleSeconds(stuck_limit), absl::ToDoubleSeconds(state.predicted_step), LastHeard(state))};
  }
  return {};
}

}  // namespace motley::worker
