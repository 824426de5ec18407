#include "planner/published/metis_groups.h"

#include <algorithm>
#include <cstddef>

#include "planner/groups/graph_partition.h"

namespace motley::planner {
namespace {

constexpr int kMostGroups = 4;

// Of a node's equal devices METIS picks any; each group takes the next ones, so that stages are runs of a piece.
std::vector<Parts> AsRuns(const Parts& groups, const Parts& pieces) {
  std::vector<Parts> result;
  std::vector<size_t> taken(pieces.size(), 0);
  for (const std::vector<int>& devices : groups) {
    Parts& runs = result.emplace_back();
    for (size_t p = 0; p < pieces.size(); ++p) {
      const std::vector<int>& all = pieces[p];
      const auto count = std::count_if(devices.begin(), devices.end(),
                                       [&](int device) { return std::binary_search(all.begin(), all.end(), device); });
      if (count == 0) continue;
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(taken[p]);
      taken[p] += static_cast<size_t>(count);
      runs.emplace_back(first, first + count);
    }
  }
  return result;
}

}  // namespace

std::vector<std::vector<Parts>> MetisGroups(const EdgeWeights& rates, const std::vector<int>& devices, const Parts& pieces) {
  std::vector<std::vector<Parts>> groupings;
  PartitionQuestion question;
  question.vertices = devices;
  question.vertex_weights.assign(rates.size(), 1);
  const int most = std::min<int>(kMostGroups, static_cast<int>(pieces.size()) - 1);
  for (int k = 2; k <= most; ++k) {
    question.parts = k;
    const absl::StatusOr<Parts> groups = PartitionGraph(rates, question);
    if (groups.ok()) groupings.push_back(AsRuns(*groups, pieces));  // else the natural pieces remain
  }
  return groupings;
}

}  // namespace motley::planner
