#include "planner/groups/groupings.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace motley::planner {
namespace {

constexpr size_t kMostCombinations = 40;  // of part counts over classes; beyond, one family by equal speed
constexpr size_t kMostMerged = 48;        // leaves; more are merged by class first

// A node's devices of one kind.
struct Leaf {
  int region = 0, node = 0, kind = 0;
  std::vector<int> devices;
};

struct LeafClass {
  std::vector<const Leaf*> leaves;
  double speed = 0;              // layer samples a second of all its devices
  std::vector<int> part_counts;  // ascending
};

std::vector<Leaf> Leaves(const Setting& setting) {
  std::map<std::tuple<int, int, int>, Leaf> leaves;
  const Cluster& cluster = setting.cluster;
  for (size_t i = 0; i < cluster.devices.size(); ++i) {
    const ClusterDevice& device = cluster.devices[i];
    const int region = cluster.nodes[device.node].region;
    Leaf& leaf = leaves[{region, device.node, device.kind}];
    leaf.region = region, leaf.node = device.node, leaf.kind = device.kind;
    leaf.devices.push_back(static_cast<int>(i));
  }
  std::vector<Leaf> result;
  for (auto& [key, leaf] : leaves) result.push_back(std::move(leaf));
  return result;
}

double LeafSpeed(const Setting& setting, const Leaf& leaf) {
  const double seconds = setting.costs.ForwardSeconds(leaf.kind, UnitKind::kLayer, 1) +
                         setting.costs.BackwardSeconds(leaf.kind, UnitKind::kLayer, 1);
  return seconds > 0 ? static_cast<double>(leaf.devices.size()) / seconds : 0;
}

// Runs of leaves, or every leaf in equal parts when there are more parts than leaves.
std::vector<int> PartCounts(const std::vector<const Leaf*>& leaves) {
  std::set<int> counts;
  const int n = static_cast<int>(leaves.size());
  for (int parts = 1; parts <= n; ++parts) {
    if (parts <= 4 || n % parts == 0) counts.insert(parts);
  }
  for (int pieces : {2, 4, 8}) {
    const bool divides = std::all_of(leaves.begin(), leaves.end(),
                                     [&](const Leaf* leaf) { return leaf->devices.size() % static_cast<size_t>(pieces) == 0; });
    if (divides) counts.insert(n * pieces);
  }
  return {counts.begin(), counts.end()};
}

template <typename Key>
std::vector<LeafClass> Classes(const Setting& setting, const std::vector<Leaf>& leaves, Key key) {
  std::map<std::pair<int, int>, LeafClass> classes;
  for (const Leaf& leaf : leaves) {
    LeafClass& of = classes[key(leaf)];
    of.leaves.push_back(&leaf);
    of.speed += LeafSpeed(setting, leaf);
  }
  std::vector<LeafClass> result;
  for (auto& [unused, of] : classes) {
    of.part_counts = PartCounts(of.leaves);
    result.push_back(std::move(of));
  }
  return result;
}

void AppendParts(const LeafClass& of, int parts, std::vector<std::vector<int>>* groups) {
  const size_t n = of.leaves.size(), count = static_cast<size_t>(parts);
  if (count <= n) {
    for (size_t p = 0; p < count; ++p) {
      std::vector<int> group;
      for (size_t i = p * n / count; i < (p + 1) * n / count; ++i) {
        group.insert(group.end(), of.leaves[i]->devices.begin(), of.leaves[i]->devices.end());
      }
      groups->push_back(std::move(group));
    }
    return;
  }
  const size_t pieces = count / n;
  for (const Leaf* leaf : of.leaves) {
    const size_t size = leaf->devices.size() / pieces;
    for (size_t p = 0; p < pieces; ++p) {
      const auto first = leaf->devices.begin() + static_cast<std::ptrdiff_t>(p * size);
      groups->emplace_back(first, first + static_cast<std::ptrdiff_t>(size));
    }
  }
}

Grouping Make(const std::vector<LeafClass>& classes, const std::vector<int>& parts, const std::string& from) {
  Grouping grouping{{}, from};
  for (size_t c = 0; c < classes.size(); ++c) AppendParts(classes[c], parts[c], &grouping.groups);
  return grouping;
}

// All combinations of part counts, fewest parts first.
std::vector<Grouping> AllCombinations(const std::vector<LeafClass>& classes, const std::string& from) {
  std::vector<Grouping> result;
  std::vector<size_t> pick(classes.size(), 0);
  while (true) {
    std::vector<int> parts(classes.size());
    for (size_t c = 0; c < classes.size(); ++c) parts[c] = classes[c].part_counts[pick[c]];
    result.push_back(Make(classes, parts, from));
    size_t c = 0;
    while (c < classes.size() && ++pick[c] == classes[c].part_counts.size()) pick[c++] = 0;
    if (c == classes.size()) break;
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Grouping& a, const Grouping& b) { return a.groups.size() < b.groups.size(); });
  return result;
}

// One parameter instead of one for each class: parts of about equal speed.
std::vector<Grouping> EqualSpeed(const std::vector<LeafClass>& classes, const std::string& from) {
  std::set<double, std::greater<>> targets;
  for (const LeafClass& of : classes) {
    for (int parts : of.part_counts) targets.insert(of.speed / parts);
  }
  std::vector<Grouping> result;
  for (double target : targets) {
    std::vector<int> parts(classes.size());
    for (size_t c = 0; c < classes.size(); ++c) {
      double nearest = INFINITY;
      for (int count : classes[c].part_counts) {
        const double distance = std::abs(std::log(classes[c].speed / count / target));
        if (distance < nearest) nearest = distance, parts[c] = count;
      }
    }
    result.push_back(Make(classes, parts, from));
  }
  return result;
}

template <typename Key>
std::vector<Grouping> Family(const Setting& setting, const std::vector<Leaf>& leaves, Key key, const std::string& from) {
  const std::vector<LeafClass> classes = Classes(setting, leaves, key);
  size_t combinations = 1;
  for (const LeafClass& of : classes) combinations = std::min(combinations * of.part_counts.size(), kMostCombinations + 1);
  return combinations <= kMostCombinations ? AllCombinations(classes, from) : EqualSpeed(classes, from);
}

// The best connected pair of groups becomes one, until all are. Of equal rates the pair of one kind, then the slowest together.
std::vector<Grouping> Merged(const Setting& setting, const std::vector<Leaf>& leaves) {
  struct Node {
    std::vector<int> devices;
    int kind, representative;
    double speed;
  };
  std::vector<Node> nodes;
  for (const Leaf& leaf : leaves) nodes.push_back({leaf.devices, leaf.kind, leaf.devices[0], LeafSpeed(setting, leaf)});
  std::vector<Grouping> result;
  while (nodes.size() > 1) {
    size_t best_a = 0, best_b = 1;
    std::tuple<double, int, double> best{-INFINITY, 0, 0};
    for (size_t a = 0; a < nodes.size(); ++a) {
      for (size_t b = a + 1; b < nodes.size(); ++b) {
        const std::tuple<double, int, double> rank{setting.links.Rate(nodes[a].representative, nodes[b].representative),
                                                   nodes[a].kind == nodes[b].kind ? 1 : 0, -(nodes[a].speed + nodes[b].speed)};
        if (rank > best) best = rank, best_a = a, best_b = b;
      }
    }
    Node& a = nodes[best_a];
    const Node& b = nodes[best_b];
    a.devices.insert(a.devices.end(), b.devices.begin(), b.devices.end());
    if (a.kind != b.kind) a.kind = -1 - static_cast<int>(best_a);
    a.speed += b.speed;
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(best_b));
    Grouping grouping{{}, "nodes merged by rate"};
    for (const Node& node : nodes) grouping.groups.push_back(node.devices);
    result.push_back(std::move(grouping));
  }
  std::reverse(result.begin(), result.end());
  return result;
}

void Canonicalize(Grouping* grouping) {
  for (std::vector<int>& group : grouping->groups) std::sort(group.begin(), group.end());
  grouping->groups.erase(
      std::remove_if(grouping->groups.begin(), grouping->groups.end(), [](const auto& group) { return group.empty(); }),
      grouping->groups.end());
  std::sort(grouping->groups.begin(), grouping->groups.end());
}

int PinOf(const std::vector<int>& group, const std::vector<int>& pinned) {
  for (int device : group) {
    if (pinned[device] >= 0) return pinned[device];
  }
  return -1;
}

}  // namespace

std::vector<Grouping> CandidateGroupings(const Setting& setting) {
  const std::vector<Leaf> leaves = Leaves(setting);
  const auto all = [](const Leaf&) { return std::pair<int, int>{0, 0}; };
  const auto by_region = [](const Leaf& leaf) { return std::pair<int, int>{leaf.region, 0}; };
  const auto by_kind = [](const Leaf& leaf) { return std::pair<int, int>{leaf.kind, 0}; };
  const auto by_region_and_kind = [](const Leaf& leaf) { return std::pair<int, int>{leaf.region, leaf.kind}; };
  std::vector<std::vector<Grouping>> families;
  families.push_back(Family(setting, leaves, all, "in runs of nodes"));
  families.push_back(Family(setting, leaves, by_kind, "by kind"));
  families.push_back(Family(setting, leaves, by_region_and_kind, "by region and kind"));
  families.push_back(Family(setting, leaves, by_region, "by region"));
  if (leaves.size() <= kMostMerged) families.push_back(Merged(setting, leaves));

  // A fair share of each family when there are too many.
  std::vector<Grouping> result;
  std::set<std::vector<std::vector<int>>> seen;
  const size_t most_groups = static_cast<size_t>(setting.workload.model.num_layers);
  size_t longest = 0;
  for (const auto& family : families) longest = std::max(longest, family.size());
  for (size_t i = 0; i < longest; ++i) {
    for (std::vector<Grouping>& family : families) {
      if (i >= family.size() || result.size() == static_cast<size_t>(kMostGroupings)) continue;
      Grouping& grouping = family[i];
      Canonicalize(&grouping);
      if (grouping.groups.size() > most_groups || !seen.insert(grouping.groups).second) continue;
      result.push_back(std::move(grouping));
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Grouping& a, const Grouping& b) { return a.groups.size() < b.groups.size(); });
  return result;
}

Grouping WithPins(Grouping grouping, const std::vector<int>& pinned) {
  std::map<int, std::vector<int>> of_stage;
  for (size_t i = 0; i < pinned.size(); ++i) {
    if (pinned[i] >= 0) of_stage[pinned[i]].push_back(static_cast<int>(i));
  }
  for (const auto& [stage, devices] : of_stage) {
    // Kept as it is where one group has all of the stage's pinned devices and none of another's.
    const auto holds_them_alone = [&, stage = stage, &devices = devices](const std::vector<int>& group) {
      return std::includes(group.begin(), group.end(), devices.begin(), devices.end()) &&
             std::all_of(group.begin(), group.end(), [&](int device) {
               const int pin = pinned[device];
               return pin < 0 || pin == stage;
             });
    };
    if (std::any_of(grouping.groups.begin(), grouping.groups.end(), holds_them_alone)) continue;
    for (std::vector<int>& group : grouping.groups) {
      std::vector<int> rest;
      std::set_difference(group.begin(), group.end(), devices.begin(), devices.end(), std::back_inserter(rest));
      group = std::move(rest);
    }
    grouping.groups.push_back(devices);
  }
  Canonicalize(&grouping);
  return grouping;
}

std::vector<int> OrderWithPins(const Grouping& grouping, const std::vector<int>& pinned, const std::vector<int>& order) {
  std::vector<int> result(order.size(), -1);
  std::vector<int> free;
  for (int group : order) {
    const int pin = PinOf(grouping.groups[group], pinned);
    if (pin < 0) {
      free.push_back(group);
    } else if (pin >= static_cast<int>(result.size()) || result[pin] >= 0) {
      return {};
    } else {
      result[pin] = group;
    }
  }
  size_t next = 0;
  for (int& group : result) {
    if (group < 0) group = free[next++];
  }
  return result;
}

}  // namespace motley::planner
