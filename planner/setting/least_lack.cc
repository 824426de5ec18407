#include "planner/setting/least_lack.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/util/lack_of_memory.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {

int64_t StateOnDevices(const Setting& setting) {
  const Costs& costs = setting.costs;
  const int64_t elements = costs.TotalElements(), all = elements * costs.StateBytesPerElement();
  const OffloadKinds kinds = setting.limits().offload;
  int64_t hosts = 0;
  for (const ClusterNode& node : setting.cluster.nodes) hosts += node.host_memory_bytes;
  const bool offers = kinds.takes_state() && hosts > 0;
  // Units that are stepped in turn leave no gradients: any that may be, and those of ministages whose parameters wait.
  const bool in_turn = setting.limits().steps_in_turn && (setting.request.steps_in_turn || (offers && kinds.parameters));
  const int64_t gone = in_turn ? elements * costs.gradient_bytes() : 0;
  if (!offers) return all - gone;
  const OwnedBytes stays = costs.OnDevice(kinds, elements);
  const int64_t gradients = in_turn ? 0 : stays.gradients;
  return std::max(all - gone - hosts, stays.parameters + gradients + stays.optimizer);
}

int64_t LeastLack(const Setting& setting) {
  int64_t lack = StateOnDevices(setting);
  for (int d = 0; d < setting.num_devices(); ++d) lack -= setting.UsableBytes(d);
  const int64_t devices = std::max(1, setting.num_devices());
  return std::max<int64_t>(0, (lack + devices - 1) / devices);
}

absl::Status OneDeviceLacks(const Setting& setting, int64_t bytes, std::string_view before, std::string_view after) {
  const int64_t least = LeastLack(setting);
  const std::string text = bytes >= least ? BytesText(bytes) : absl::StrCat("at least ", BytesText(least));
  return LackOfMemory(std::max(bytes, least), absl::StrCat(std::string(before), " lacks ", text, std::string(after)),
                      LackIn::kOneDevice);
}

absl::Status NoPlanFits(const Setting& setting, std::string_view strategy, const DeviceLack& nearest) {
  return OneDeviceLacks(setting, nearest.bytes,
                        absl::StrCat(std::string(strategy), ": no plan fits: in the one that comes nearest ",
                                     setting.cluster.devices[nearest.device].id.value()));
}

}  // namespace motley::planner
