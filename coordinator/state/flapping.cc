#include "coordinator/state/flapping.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace motley::coordinator {
namespace {

// Falls this near to each other have one cause.
constexpr absl::Duration kTogether = absl::Seconds(2);

bool IsShared(absl::Duration fall, const ClusterState& state) {
  size_t fallen = 0;
  for (const auto& [name, node] : state.nodes) {
    fallen += std::any_of(node.falls.begin(), node.falls.end(),
                          [&](absl::Duration other) { return absl::AbsDuration(other - fall) <= kTogether; });
  }
  return fallen > 1 && 2 * fallen > state.nodes.size();
}

}  // namespace

int Falls(absl::Duration now, const ClusterState& state, const NodeRecord& node, const FlappingConfig& config) {
  return static_cast<int>(std::count_if(node.falls.begin(), node.falls.end(), [&](absl::Duration fall) {
    return now - fall <= config.window && !IsShared(fall, state);
  }));
}

HoldDecision DecideHold(absl::Duration now, const ClusterState& state, const NodeRecord& node, const FlappingConfig& config) {
  const int falls = Falls(now, state, node, config);
  if (falls == 0) return {};
  // There is nobody to protect from it.
  const bool alone = std::none_of(state.nodes.begin(), state.nodes.end(), [&](const auto& entry) {
    return entry.first != node.description.name && entry.second.connected && !entry.second.drained && !entry.second.held;
  });
  if (alone) return {};
  absl::Duration hold = falls == 1 ? config.first_hold : falls == 2 ? config.second_hold : config.third_hold;
  for (int i = 3; i < falls && hold < config.longest_hold; ++i) hold *= 2;
  hold = std::min(hold, config.longest_hold);
  if (now - node.up_since >= hold) return {};
  return {true, absl::StrFormat("was lost %d time%s in the last %.0f min: used again when it has been up for %.0f s", falls,
                                falls == 1 ? "" : "s", absl::ToDoubleMinutes(config.window), absl::ToDoubleSeconds(hold))};
}

void ForgetOldFalls(absl::Duration now, const FlappingConfig& config, std::vector<absl::Duration>* falls) {
  std::erase_if(*falls, [&](absl::Duration fall) { return now - fall > config.window; });
}

}  // namespace motley::coordinator
