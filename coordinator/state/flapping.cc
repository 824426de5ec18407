#include "coordinator/state/flapping.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/address.h"

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

// Until that time.
int OwnFalls(absl::Duration until, absl::Duration now, const ClusterState& state, const NodeRecord& node,
             const FlappingConfig& config) {
  return static_cast<int>(std::count_if(node.falls.begin(), node.falls.end(), [&](absl::Duration fall) {
    return fall <= until && now - fall <= config.window && !IsShared(fall, state);
  }));
}

bool HasOthersFalls(const NodeRecord& node) {
  return node.falls.empty() && !node.peer_address.empty() && !IsLoopback(node.peer_address);
}

}  // namespace

int Falls(absl::Duration now, const ClusterState& state, const NodeRecord& node, const FlappingConfig& config) {
  if (!HasOthersFalls(node)) return OwnFalls(now, now, state, node, config);
  int falls = 0;
  if (!state.run) return falls;
  for (const auto& [name, other] : state.nodes) {
    const bool is_gone = !other.connected && other.peer_address == node.peer_address;
    if (is_gone && state.run->proven.contains(name)) falls += OwnFalls(node.up_since, now, state, other, config);
  }
  return falls;
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
  const std::string who = HasOthersFalls(node) ? absl::StrCat("a node from its address ", node.peer_address, " ") : "";
  return {true, absl::StrFormat("%swas lost %d time%s in the last %.0f min: used %swhen it has been up for %.0f s", who, falls,
                                falls == 1 ? "" : "s", absl::ToDoubleMinutes(config.window), who.empty() ? "again " : "",
                                absl::ToDoubleSeconds(hold))};
}

void ForgetOldFalls(absl::Duration now, const FlappingConfig& config, std::vector<absl::Duration>* falls) {
  std::erase_if(*falls, [&](absl::Duration fall) { return now - fall > config.window; });
}

}  // namespace motley::coordinator
