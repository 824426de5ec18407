#include "coordinator/epoch/leave_out.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::coordinator {
namespace {

constexpr char kAnotherChance[] = "; mend that, then start its worker anew: that gives it another chance";

// `place`: the node, or the device of it.
void SayLeftOut(Core& core, const NodeName& node, const DeviceId& device, const std::string& place, const std::string& why) {
  const JobRun& run = *core.state.run;
  EventRecord event;
  event.job = run.job;
  event.kind = kind::kDeviceLeftOut;
  event.node = node;
  event.device = device;
  event.epoch = core.state.jobs.at(run.job).epoch;
  event.message = absl::StrCat("the job goes on without ", place, ": ", why, kAnotherChance);
  core.Emit(std::move(event));
  RemindOfLeftOut(core, node);
}

}  // namespace

void LeaveOut(Core& core, const NodeName& node, const std::string& why) {
  JobRun& run = *core.state.run;
  for (const DeviceDescription& device : run.considered) {
    if (NodeOf(device.id) == node) run.left_out[device.id] = why;
  }
  run.storage_ok.erase(node);  // nothing of the job is compared with it
  SayLeftOut(core, node, DeviceId(), absl::StrCat("node ", node.value()), why);
}

void LeaveOutDevice(Core& core, const DeviceId& device, const std::string& why) {
  core.state.run->left_out[device] = why;
  SayLeftOut(core, NodeOf(device), device, device.value(), why);
}

void RemindOfLeftOut(Core& core, const NodeName& name) {
  const JobRun& run = *core.state.run;
  const auto node = core.state.nodes.find(name);
  if (node == core.state.nodes.end() || !node->second.connected || node->second.drained) return;
  for (const DeviceDescription& device : node->second.description.devices) {
    const auto out = run.left_out.find(device.id);
    if (out == run.left_out.end()) continue;
    const bool all = AllLeftOut(run, node->second);
    node->second.reason =
        absl::StrCat("job ", run.job.value(), " goes on without ", all ? absl::StrCat("node ", name.value()) : device.id.value(),
                     ": ", out->second, kAnotherChance);
    return;
  }
}

}  // namespace motley::coordinator
