// What changes from one plan to another, device by device.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace motley::planner {

// One thing that is another: "batch", "25 = 1x25", "19 = 1x19".
struct Change {
  std::string what, before, after;
  friend bool operator==(const Change&, const Change&) = default;
};

// Devices that change alike, in the order of the plans' ranks.
struct DeviceChanges {
  std::vector<DeviceId> devices;
  std::vector<Change> changes;  // a device that one plan does not know: "role"
};

struct PlanDiff {
  std::vector<Change> plan;  // strategy, batch, schedule, step seconds ...
  std::vector<DeviceChanges> devices;
  bool empty() const { return plan.empty() && devices.empty(); }
};

// Shares count as changed from a thousandth on: what the text shows.
PlanDiff Diff(const Plan& before, const Plan& after);

// For people. "" when nothing changes.
std::string ToText(const PlanDiff& diff);

}  // namespace motley::planner
