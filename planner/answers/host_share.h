// What a plan keeps in the memory of each host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/program/offload_kinds.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct HostShare {
  NodeName node;
  int ranks = 0;  // that keep something there
  int64_t bytes = 0, offered_bytes = 0;
};

// Of nodes on which something waits, in the cluster's order. `plan` has its predictions.
std::vector<HostShare> HostSharesOf(const Setting& setting, const Plan& plan);

// What any of its ranks offloads.
OffloadKinds OffloadsOf(const Plan& plan);

// "a 12.0 GiB of 64.0 GiB, b 3.0 GiB of 16.0 GiB"; the fullest ones of many.
std::string ToText(const std::vector<HostShare>& shares);

}  // namespace motley::planner
