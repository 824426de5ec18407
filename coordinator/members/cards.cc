#include "coordinator/members/cards.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::coordinator {

void OnCard(Core& core, const NodeName& node, const CardReport& report) {
  auto& devices = core.state.nodes.at(node).description.devices;
  const auto device = std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return d.id == report.device; });
  if (device == devices.end()) return;
  CardDescription& card = device->card;
  const bool newly_lost = card.lost.empty() && !report.lost.empty();
  card.health = report.health;
  card.lost = report.lost;
  card.used_by_others_bytes = report.used_by_others_bytes;
  if (!newly_lost) return;
  core.state.membership_changed = core.clock.Now();
  EventRecord event;
  event.kind = kind::kCardLost;
  event.node = node;
  event.device = report.device;
  event.message = absl::StrCat(report.device.value(), ": ", report.lost, ": no plan uses it until its worker starts again");
  // Its rank can save nothing any more: the epoch ends as by the rank's death, which follows.
  if (core.state.run) {
    JobRun& run = *core.state.run;
    const bool trains = run.stage == Stage::kStarting || run.stage == Stage::kRunning;
    const bool involved =
        std::any_of(run.ranks.begin(), run.ranks.end(), [&](const RankRun& r) { return r.device == report.device && !r.ended; });
    if (trains && involved) {
      run.failures.push_back({core.clock.Now(), FailureKind::kDied, node, report.device, report.lost});
      event.job = run.job;
      event.epoch = core.state.jobs.at(run.job).epoch;
    }
  }
  core.Emit(std::move(event));
}

}  // namespace motley::coordinator
