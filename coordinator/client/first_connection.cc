#include "coordinator/client/first_connection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/duration_text.h"
#include "coordinator/client/connect_reason.h"
#include "coordinator/client/refusal.h"

namespace motley::client {
namespace {

// It is said at once, before a coordinator that takes a connection would wait for ours.
constexpr absl::Duration kRefusalComes = absl::Seconds(1);
// A channel that fails again does not change its state, so its reason is asked again after this.
constexpr absl::Duration kAgain = absl::Milliseconds(100);

absl::Status Unreachable(const std::string& address, const std::string& why) {
  return absl::UnavailableError(
      absl::StrCat("no coordinator answers at ", address, " (", why,
                   "); start motley-coordinator, or say where it listens with --coordinator HOST:PORT (or unix:PATH) or "
                   "the environment variable MOTLEY_COORDINATOR"));
}

}  // namespace

absl::Status NotTaken(const std::string& address, const std::string& why) {
  if (std::optional<std::string> refusal = AskRefusal(address, kRefusalComes)) {
    return absl::ResourceExhaustedError(*std::move(refusal));
  }
  return Unreachable(address, why);
}

absl::Status AwaitFirst(const Dial& dial, const FirstWait& wait, const std::function<void(const std::string&)>& say) {
  const bool by_socket = absl::StartsWith(wait.address, "unix:");
  const absl::Time begin = absl::Now(), end = begin + wait.connect;
  bool said = wait.silence >= wait.connect;
  for (;;) {
    const grpc_connectivity_state state = dial.state();
    if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
    const std::string why = state == GRPC_CHANNEL_TRANSIENT_FAILURE ? dial.why_not(end) : "";
    if (!why.empty() && IsOfTheAddress(by_socket, why)) return NotTaken(wait.address, why);
    const absl::Time until = said ? end : begin + wait.silence;
    const absl::Time next = why.empty() ? until : std::min(until, absl::Now() + kAgain);
    if (dial.changes(state, next) || absl::Now() < until) continue;
    if (said) return Unreachable(wait.address, why.empty() ? absl::StrCat("waited ", DurationText(wait.connect)) : why);
    said = true;
    say(absl::StrCat("no answer from ", wait.address, " yet; waiting ", DurationText(end - until), " more"));
  }
}

}  // namespace motley::client
