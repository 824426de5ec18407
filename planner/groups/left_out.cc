#include "planner/groups/left_out.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::planner {
namespace {

constexpr size_t kMostKinds = 4;  // that are left out
constexpr int kAllDivisions = 5;  // devices: 203 divisions

double Speed(const Setting& setting, int device) {
  const int kind = setting.KindOf(device);
  return 1 / (setting.costs.ForwardSeconds(kind, UnitKind::kLayer, 1) + setting.costs.BackwardSeconds(kind, UnitKind::kLayer, 1));
}

// Kinds or nodes, the slowest first: of kinds a single device counts, of nodes all together.
std::vector<int> SlowestFirst(const Setting& setting, bool kinds) {
  std::map<int, double> speed;
  for (int d = 0; d < setting.num_devices(); ++d) {
    if (kinds) {
      speed[setting.KindOf(d)] = Speed(setting, d);
    } else {
      speed[setting.cluster.devices[d].node] += Speed(setting, d);
    }
  }
  std::vector<std::pair<double, int>> order;
  for (const auto& [key, value] : speed) order.emplace_back(value, key);
  std::sort(order.begin(), order.end());
  std::vector<int> keys;
  for (const auto& [value, key] : order) keys.push_back(key);
  return keys;
}

struct LeftOut {
  std::vector<bool> devices;  // by device: out
  std::string what;
};

std::vector<LeftOut> Choices(const Setting& setting) {
  std::vector<LeftOut> choices;
  const auto add = [&](const std::vector<int>& order, size_t count, bool kinds) {
    const std::set<int> out(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    LeftOut choice{{}, absl::StrCat("without the slowest ", count, kinds ? " kinds" : " nodes")};
    for (int d = 0; d < setting.num_devices(); ++d) {
      const int key = kinds ? setting.KindOf(d) : setting.cluster.devices[d].node;
      choice.devices.push_back(out.contains(key) && setting.pinned_stage[d] < 0);
    }
    choices.push_back(std::move(choice));
  };
  const std::vector<int> kinds = SlowestFirst(setting, true), nodes = SlowestFirst(setting, false);
  for (size_t count = 1; count < kinds.size() && count <= kMostKinds; ++count) add(kinds, count, true);
  for (const size_t count : std::set<size_t>{1, 2, nodes.size() / 4, nodes.size() / 2, nodes.size() * 3 / 4, nodes.size() - 1}) {
    if (count > 0 && count < nodes.size()) add(nodes, count, false);
  }
  return choices;
}

// Every way to give each device to a group or to none.
void AddDivisions(const Setting& setting, int device, std::vector<std::vector<int>>* groups,
                  std::set<std::vector<std::vector<int>>>* all) {
  if (device == setting.num_devices()) {
    if (!groups->empty()) all->insert(*groups);
    return;
  }
  if (setting.pinned_stage[device] < 0) AddDivisions(setting, device + 1, groups, all);
  for (size_t g = 0; g <= groups->size(); ++g) {
    if (g == groups->size()) groups->emplace_back();
    (*groups)[g].push_back(device);
    AddDivisions(setting, device + 1, groups, all);
    (*groups)[g].pop_back();
    if (!(*groups)[g].empty()) continue;
    groups->pop_back();
    break;
  }
}

}  // namespace

std::vector<Grouping> WithSlowLeftOut(const Setting& setting, std::vector<Grouping> groupings) {
  std::set<std::vector<std::vector<int>>> known;
  for (const Grouping& grouping : groupings) known.insert(grouping.groups);
  const size_t whole = groupings.size();
  for (const LeftOut& choice : Choices(setting)) {
    for (size_t i = 0; i < whole; ++i) {
      Grouping rest{{}, absl::StrCat(groupings[i].from, " ", choice.what)};
      for (const std::vector<int>& group : groupings[i].groups) {
        std::vector<int> kept;
        for (const int device : group) {
          if (!choice.devices[device]) kept.push_back(device);
        }
        if (!kept.empty()) rest.groups.push_back(std::move(kept));
      }
      if (known.insert(rest.groups).second) groupings.push_back(std::move(rest));
    }
  }
  if (setting.num_devices() <= kAllDivisions) {
    std::set<std::vector<std::vector<int>>> all;
    std::vector<std::vector<int>> groups;
    AddDivisions(setting, 0, &groups, &all);
    for (const std::vector<std::vector<int>>& division : all) {
      if (known.insert(division).second) groupings.push_back({division, "of single devices"});
    }
  }
  return groupings;
}

}  // namespace motley::planner
