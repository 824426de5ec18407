// What no plan can lack less than, by adding up.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Bytes of one copy of the training state that must be on devices whatever the plan: what may not wait in host memory, or finds
// no room there.
int64_t StateOnDevices(const Setting& setting);

// Of the fullest device of any whole plan: what of the training state must be on devices and is more than all devices' usable
// memory, divided by the devices. 0: there is room for it.
int64_t LeastLack(const Setting& setting);

// Of a search that gave up at one device, which lacks `bytes` there: LackOfMemory of LackIn::kOneDevice, with "BEFORE lacks 1.2
// GiB AFTER", or "lacks at least 40.1 GiB" where any whole plan's fullest device lacks more.
absl::Status OneDeviceLacks(const Setting& setting, int64_t bytes, std::string_view before, std::string_view after = "");

// The device that lacks most, in the attempt of a search that came nearest.
struct DeviceLack {
  int64_t bytes = 0;
  int device = 0;
};
absl::Status NoPlanFits(const Setting& setting, std::string_view strategy, const DeviceLack& nearest);

}  // namespace motley::planner
