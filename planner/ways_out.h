// Nothing fits: what would. Each way is tried by really planning again with one thing changed.
#pragma once

#include <string>
#include <vector>

#include "planner/setting.h"

namespace motley::planner {

struct WayOut {
  std::string what;         // "--dtype float16", "--global-batch 128 instead of 512", "1 more A6000 on n1"
  double step_seconds = 0;  // of the plan that was tried; auto may find a faster one
};

// The cheapest `most` ways that work, cheapest first: what costs nothing (another strategy, lifting a restriction of the
// request), what changes the numbers of the training (half precision), its batch, its data (sequence), what needs the hosts'
// memory, what costs money (cards). `book` as the setting was made with. Each try has a small search budget and auto's are those
// of quick strategies, so the ways take about as long as a few plans.
std::vector<WayOut> FindWaysOut(const Setting& setting, const LatencyBook* book, size_t most = 3);

}  // namespace motley::planner
