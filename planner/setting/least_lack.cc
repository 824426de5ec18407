#include "planner/setting/least_lack.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {

int64_t LeastLack(const Setting& setting) {
  int64_t lack = setting.costs.TotalElements() * setting.costs.StateBytesPerElement();
  for (int d = 0; d < setting.num_devices(); ++d) lack -= setting.UsableBytes(d);
  const bool takes_state = setting.limits().offload.takes_state();
  for (const ClusterNode& node : setting.cluster.nodes) lack -= takes_state ? node.host_memory_bytes : 0;
  const int64_t devices = std::max(1, setting.num_devices());
  return std::max<int64_t>(0, (lack + devices - 1) / devices);
}

OneDevicesLack AtLeast(const Setting& setting, int64_t bytes) {
  const int64_t least = LeastLack(setting);
  if (bytes >= least) return {bytes, absl::StrCat("lacks ", BytesText(bytes))};
  return {least, absl::StrCat("lacks at least ", BytesText(least))};
}

}  // namespace motley::planner
