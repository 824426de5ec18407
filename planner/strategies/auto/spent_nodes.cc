#include "planner/strategies/auto/spent_nodes.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley::planner {

std::string ToText(const SpentNodes& spent) {
  std::vector<std::string> steps;
  for (const auto& [what, nodes] : {std::pair("pipelines in turn", spent.turns), std::pair("layered pipelines", spent.layered),
                                    std::pair("prices", spent.prices), std::pair("climbing", spent.climbing),
                                    std::pair("parts of the cluster", spent.parts)}) {
    if (nodes > 0) steps.push_back(absl::StrCat(nodes, " for ", what));
  }
  return absl::StrCat(spent.Total(), " search nodes", steps.empty() ? "" : ": ", absl::StrJoin(steps, ", "));
}

}  // namespace motley::planner
