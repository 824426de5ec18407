// What no plan can lack less than, by adding up.
#pragma once

#include <cstdint>
#include <string>

#include "planner/setting/setting.h"

namespace motley::planner {

// Of the fullest device of any whole plan: what the training state is more than all devices' usable memory (and the hosts',
// where plans may offload state), divided by the devices. 0: there is room for it.
int64_t LeastLack(const Setting& setting);

// Of a search that gave up at one device, which lacks `bytes` there.
struct OneDevicesLack {
  int64_t bytes = 0;  // of a whole plan's fullest device, at least
  std::string text;   // "lacks 1.2 GiB", "lacks at least 40.1 GiB"
};
OneDevicesLack AtLeast(const Setting& setting, int64_t bytes);

}  // namespace motley::planner
