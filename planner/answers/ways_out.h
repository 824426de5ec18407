// Nothing fits: what would. Each way is tried by really planning again with one thing changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct WayOut {
  std::string what;         // "--dtype float16", "--global-batch 128 instead of 512", "1 more A6000 on n1"
  double step_seconds = 0;  // of the plan that was tried; auto may find a faster one
};

// The cheapest `most` ways that work, cheapest first: what costs nothing (another strategy, lifting a restriction of the
// request), what changes the numbers of the training (half precision), its batch, its data (sequence), what needs the hosts'
// memory, what costs money (cards). `book` as the setting was made with. The tries are few, with a small search budget, and
// those of auto and of other strategies are of quick ones, so the ways take about as long as a few plans.
// `left`: what remains of the request's deadline; without it, the whole deadline; without one, only the tries are counted. Ways
// that there was no time for are left out.
std::vector<WayOut> FindWaysOut(const Setting& setting, const LatencyBook* book, size_t most = 3,
                                std::optional<absl::Duration> left = std::nullopt);

// RESOURCE_EXHAUSTED: `why` there is no plan, with the ways out. Where the cards together lack memory for the training state,
// that leads; else the strategy's reason does (a batch smaller than the devices, one node that is full).
absl::Status NothingFits(const Setting& setting, const LatencyBook* book, const absl::Status& why,
                         std::optional<absl::Duration> left = std::nullopt);

}  // namespace motley::planner
