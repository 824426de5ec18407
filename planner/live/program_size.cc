#include "planner/live/program_size.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "planner/plan/each_rank.h"

namespace motley::planner {

absl::Status CheckProgramSizes(const Plan& plan, const std::vector<const std::vector<Program>*>& programs, int64_t most_bytes) {
  struct Node {
    int64_t bytes = 0, ranks = 0;
  };
  std::map<NodeName, Node> nodes;
  size_t r = 0;
  ForEachRank(plan, [&](const RankPlan& rank) {
    Node& node = nodes[NodeOf(rank.device)];
    ++node.ranks;
    for (const std::vector<Program>* of_all : programs) node.bytes += static_cast<int64_t>(ToText((*of_all)[r]).size());
    ++r;
  });
  constexpr double kMiB = 1 << 20;
  for (const auto& [name, node] : nodes) {
    if (node.bytes <= most_bytes) continue;
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the programs of the %s of node %s are %.1f MiB long; a worker takes %.1f MiB. Larger microbatches, fewer ministages or "
        "a "
        "smaller global batch make them shorter",
        Count(node.ranks, "rank"), name.value(), static_cast<double>(node.bytes) / kMiB, static_cast<double>(most_bytes) / kMiB));
  }
  return absl::OkStatus();
}

}  // namespace motley::planner
