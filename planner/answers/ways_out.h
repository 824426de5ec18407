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
  std::string what;  // "--dtype float16", "--global-batch 128 instead of 512", "1 more A6000 on n1"
  // Of the plan that was tried; auto may find a faster one, but for a few more cards, which are planned as a file that has them.
  double step_seconds = 0;
  // Of the fastest tried plan that the engine runs; 0: none of them runs.
  double runs_here_seconds = 0;
  double tokens = 0;  // of a step
  double tokens_per_second() const { return step_seconds > 0 ? tokens / step_seconds : 0; }
};

inline constexpr size_t kWaysShown = 6;

// The cheapest `most` ways that work, cheapest first: what costs nothing (another strategy, lifting a restriction of the
// request, a smaller reserve of memory), a smaller batch, what needs the hosts' memory, what changes the numbers of the training
// (half precision) or its data (sequence, down to an eighth), what costs money (cards). `book` as the setting was made with. The
// tries are few, with a small search budget, and those of auto and of other strategies are of quick ones, so the ways take about
// as long as a few plans.
// `left`: what remains of the request's deadline; without it, the whole deadline; without one, only the tries are counted. Ways
// that there was no time for are left out.
std::vector<WayOut> FindWaysOut(const Setting& setting, const LatencyBook* book, size_t most = kWaysShown,
                                std::optional<absl::Duration> left = std::nullopt);

// RESOURCE_EXHAUSTED: `why` there is no plan, with the ways out. Where the cards together lack memory for the training state,
// that leads; else the strategy's reason does (a batch smaller than the devices, one node that is full).
absl::Status NothingFits(const Setting& setting, const LatencyBook* book, const absl::Status& why,
                         std::optional<absl::Duration> left = std::nullopt);

// Why there is no plan, in a line: of auto it is the reason of whichever plan came nearest.
std::string ReasonText(const Setting& setting, const absl::Status& why);

// For people, a line for each: "  --memory-reserve 3%: 5.47 s a step, 23951 tokens/s, does not run here".
std::string ToText(const Setting& setting, const std::vector<WayOut>& ways);

}  // namespace motley::planner
