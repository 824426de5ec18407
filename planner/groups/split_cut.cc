#include "planner/groups/split_cut.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

namespace motley::planner {
namespace {

struct Part {
  std::vector<int> vertices;
  std::optional<MinCut> cut;  // none: a single vertex
};

Part MakePart(const EdgeWeights& weights, std::vector<int> vertices) {
  Part part{std::move(vertices), std::nullopt};
  if (part.vertices.size() > 1) part.cut = FindMinCut(weights, part.vertices);
  return part;
}

Parts Ordered(const std::vector<Part>& parts) {
  Parts result;
  result.reserve(parts.size());
  for (const Part& part : parts) result.push_back(part.vertices);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

std::vector<Parts> SplitCuts(const EdgeWeights& weights, int most_parts) {
  std::vector<Parts> result;
  if (weights.empty() || most_parts < 1) return result;
  std::vector<int> all(weights.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<Part> parts;
  if (most_parts == 1) return {{std::move(all)}};
  parts.push_back(MakePart(weights, std::move(all)));
  result.push_back(Ordered(parts));
  while (static_cast<int>(parts.size()) < most_parts) {
    size_t lightest = parts.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].cut.has_value()) continue;
      if (lightest == parts.size() || parts[i].cut->weight < parts[lightest].cut->weight) lightest = i;
    }
    if (lightest == parts.size()) break;
    std::vector<int> side = parts[lightest].cut->side, rest;
    std::set_difference(parts[lightest].vertices.begin(), parts[lightest].vertices.end(), side.begin(), side.end(),
                        std::back_inserter(rest));
    parts[lightest] = MakePart(weights, std::move(rest));
    parts.push_back(MakePart(weights, std::move(side)));
    result.push_back(Ordered(parts));
  }
  return result;
}

}  // namespace motley::planner
