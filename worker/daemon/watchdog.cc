#include "worker/daemon/watchdog.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace motley::worker {

std::string LastHeard(const WatchState& state) { return state.doing.empty() ? "" : "; last heard: " + state.doing; }

namespace {

constexpr int kMostPatience = 10;  // times that before the first progress, for a process that works on and says nothing

WatchDecision DecideBeforeFirstWord(absl::Duration now, const WatchState& state, const WatchConfig& config) {
  const absl::Duration still = now - state.last_sign, limit = state.stopped ? config.stopped_limit : state.first_progress;
  if (still > limit) {
    return {true,
            absl::StrFormat("no sign of life for %.1f s since it was started %.1f s ago (limit %.1f s): its process %s",
                            absl::ToDoubleSeconds(still), absl::ToDoubleSeconds(now - state.started),
                            absl::ToDoubleSeconds(limit), state.stopped ? "is stopped" : "uses no processor and reads nothing")};
  }
  if (now - state.started <= kMostPatience * state.first_progress) return {};
  return {true, absl::StrFormat("it works, and has not said a word for %.1f s (limit %.1f s)",
                                absl::ToDoubleSeconds(now - state.started),
                                absl::ToDoubleSeconds(kMostPatience * state.first_progress))};
}

}  // namespace

WatchDecision Decide(absl::Duration now, const WatchState& state, const WatchConfig& config) {
  if (!state.has_spoken) return DecideBeforeFirstWord(now, state, config);
  const absl::Duration silence = now - state.last_word;
  const absl::Duration silence_limit = config.silence_limit;
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
