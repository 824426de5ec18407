#include "worker/daemon/stop.h"

#include <systemd/sd-daemon.h>
#include <time.h>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/stop_signals.h"

namespace motley::worker {
namespace {

constexpr timespec kTurn = {.tv_sec = 0, .tv_nsec = 100'000'000};

}  // namespace

StopDecision Decide(absl::Duration now, const StopState& state) {
  const bool files = state.files && state.limit > absl::ZeroDuration();
  if (!state.training && !files) return {false, "no rank trains here"};
  const std::string lost =
      state.training ? "; steps since the newest checkpoint will be repeated" : "; what only this node's disk has waits here";
  if (state.asked_again) return {false, "told again" + lost};
  if (!state.connected)
    return {false, state.training ? "no session with the coordinator, so nobody lets the ranks save" + lost
                                  : "no session with the coordinator" + lost};
  if (now - state.asked_at >= state.limit) {
    return {false, absl::StrCat(state.training ? "the ranks have not ended" : "other nodes have not brought it",
                                " within worker.stop_seconds = ", absl::ToDoubleSeconds(state.limit), lost)};
  }
  if (!state.training) {
    return {true, absl::StrCat("other nodes may bring what only this node's disk has, within worker.stop_seconds = ",
                               absl::ToDoubleSeconds(state.limit), "; a second SIGTERM or SIGINT ends at once")};
  }
  return {true, absl::StrCat("ranks train here: they may save first, within worker.stop_seconds = ",
                             absl::ToDoubleSeconds(state.limit), "; a second SIGTERM or SIGINT ends at once")};
}

void LetRanksSave(Worker& worker, absl::Duration limit, const sigset_t& signals, const Clock& clock) {
  StopState state{clock.Now(), limit};
  std::string last_reason;
  while (true) {
    state.training = worker.training();
    state.connected = worker.connected();
    state.files = worker.keeps_files();
    const StopDecision decision = Decide(clock.Now(), state);
    if (decision.reason != last_reason) LogInfo(absl::StrCat("told to end: ", decision.reason));
    // Also where nothing is to be waited for: one that says so is not taken for lost.
    if (last_reason.empty()) worker.Leave(decision.wait ? limit : absl::ZeroDuration());
    if (!decision.wait) return;
    last_reason = decision.reason;
    state.asked_again = AsksToHurry(sigtimedwait(&signals, nullptr, &kTurn));
    sd_notify(0, "WATCHDOG=1");
  }
}

}  // namespace motley::worker
