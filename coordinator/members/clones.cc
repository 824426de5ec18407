#include "coordinator/members/clones.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/members/registry.h"

namespace motley::coordinator {
namespace {

constexpr size_t kMostClones = 64;
constexpr absl::Duration kGone = absl::Hours(1);  // after its newest try; then it is said again

std::string Origin(const std::string& address) { return address.empty() ? "this machine" : address; }

}  // namespace

void NoteClone(Core& core, const NodeName& node, const std::string& address) {
  auto& clones = core.state.clones;
  if (clones.size() >= kMostClones && !clones.contains({node, address})) {
    clones.erase(std::min_element(clones.begin(), clones.end(),
                                  [](const auto& a, const auto& b) { return a.second.newest < b.second.newest; }));
  }
  const absl::Duration now = core.clock.Now();
  clones.try_emplace({node, address}, Clone{now, now, false}).first->second.newest = now;
}

void SayClones(Core& core) {
  const absl::Duration now = core.clock.Now();
  std::erase_if(core.state.clones, [&](const auto& entry) { return now - entry.second.newest > kGone; });
  for (auto& [who, clone] : core.state.clones) {
    const auto node = core.state.nodes.find(who.first);
    const bool is_there = node != core.state.nodes.end() && node->second.connected;
    // Its own worker, started anew, is tried again until the loss is noticed.
    if (!is_there) clone.first = now;
    if (clone.said || !is_there || node->second.last_seen <= clone.first) continue;
    clone.said = true;
    core.Emit(NodeEvent(
        kind::kNodeCloned, who.first,
        absl::StrCat("a second worker that says to be node ", who.first.value(), " came from ", Origin(who.second),
                     " and is refused, while the node itself is there (", Origin(node->second.peer_address),
                     "): was its machine or its identity folder copied? On the copy stop motley-worker, remove the folder of "
                     "worker.identity and join under another name (--node)")));
  }
}

}  // namespace motley::coordinator
