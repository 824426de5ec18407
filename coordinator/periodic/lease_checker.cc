#include "coordinator/periodic/lease_checker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/duration_text.h"
#include "common/base/logging.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/members/registry.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// A lost node stays in the listing for as long as somebody may ask what became of it.
constexpr absl::Duration kForgetAfter = absl::Hours(24);
// Checks come several times a second. A coordinator that was stopped or starved for longer has not read what its workers sent
// meanwhile: the silence is its own.
constexpr absl::Duration kShortestStall = absl::Seconds(1);

}  // namespace

void CheckLeases(Core& core) {
  const absl::Duration now = core.clock.Now();
  const absl::Duration since = core.leases_checked ? now - *core.leases_checked : absl::ZeroDuration();
  core.leases_checked = now;
  if (since > std::max(core.config.lease / 4, kShortestStall)) {
    LogWarning(absl::StrCat("the coordinator stood still for ", DurationText(since), "; its workers' leases begin anew"));
    for (auto& [name, node] : core.state.nodes) {
      if (node.connected) node.last_seen = now;
    }
  }
  // What waits for its turn behind a crowd was sent in time.
  for (const auto& [name, link] : core.links) {
    if (auto node = core.state.nodes.find(name); node != core.state.nodes.end() && link->HasUnread())
      node->second.last_seen = now;
  }
  const LeaseDecision leases = DecideLeases(now, core.state, core.config.lease);
  if (leases.brake != core.lease_brake && !leases.brake.empty()) LogWarning(leases.brake);
  core.lease_brake = leases.brake;
  for (const auto& [name, why] : leases.expired) Disconnect(core, name, why);
  if (!leases.expired.empty()) Drive(core);  // before one of them is back and its loss would go unseen
  std::erase_if(core.state.nodes, [&](const auto& entry) {
    return !entry.second.connected && !entry.second.drained && now - entry.second.last_seen > kForgetAfter;
  });
}

}  // namespace motley::coordinator
