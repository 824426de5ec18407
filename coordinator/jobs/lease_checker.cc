#include "coordinator/jobs/lease_checker.h"

#include "coordinator/jobs/registry.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// A lost node stays in the listing for as long as somebody may ask what became of it.
constexpr absl::Duration kForgetAfter = absl::Hours(24);

}  // namespace

void CheckLeases(Core& core) {
  const absl::Duration now = core.clock.Now();
  for (const auto& [name, why] : ExpiredLeases(now, core.state, core.config.lease)) Disconnect(core, name, why);
  std::erase_if(core.state.nodes, [&](const auto& entry) {
    return !entry.second.connected && !entry.second.drained && now - entry.second.last_seen > kForgetAfter;
  });
}

}  // namespace motley::coordinator
