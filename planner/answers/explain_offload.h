// What a plan's offload does and what it costs, for people.
#pragma once

#include <string>

#include "planner/pricing/evaluate.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// One direction of the link to a host's memory that is busiest.
struct HostLinkUse {
  std::string link;
  double busy_seconds = 0;                      // what its bytes take, alone on the link
  double copy_seconds = 0, hidden_seconds = 0;  // while a copy over it is under way; of it beside its device's compute
};

// Of an evaluation whose graph copies nothing, a use without seconds.
HostLinkUse FullestHostLink(const Setting& setting, const Evaluation& evaluation);

// Kinds and bytes by rank and by host, the fullest link, and the same plan with all on the cards. Empty: it offloads nothing.
std::string ExplainOffload(const Setting& setting, const Evaluation& evaluation);

}  // namespace motley::planner
