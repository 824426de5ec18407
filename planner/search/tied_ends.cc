#include "planner/search/tied_ends.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace motley::planner {
namespace {

constexpr size_t kMostGroups = 8;  // of more, only neighbours of what others found

using Group = std::vector<int>;

struct End {
  Group devices;
  int tp = 1;
};

class EndsTogether {
 public:
  EndsTogether(const Setting& setting, const TurnChoice& choice) : setting_(setting), choice_(choice) {}

  std::vector<TurnChoice> All() {
    for (size_t a = 0; a < choice_.groups.size(); ++a) {
      for (size_t b = 0; b < choice_.groups.size(); ++b) {
        if (a != b && ShareNode(a, b)) Add({a, b}, {choice_.groups[a], choice_.tp[a]}, {choice_.groups[b], choice_.tp[b]});
      }
    }
    for (size_t g = 0; g < choice_.groups.size(); ++g) Cut(g);
    return std::move(found_);
  }

 private:
  int NodeOf(int device) const { return setting_.cluster.devices[device].node; }

  bool ShareNode(size_t a, size_t b) const {
    std::set<int> nodes;
    for (const int device : choice_.groups[a]) nodes.insert(NodeOf(device));
    return std::any_of(choice_.groups[b].begin(), choice_.groups[b].end(), [&](int d) { return nodes.contains(NodeOf(d)); });
  }

  // Half of each node's devices, so that both halves are on all of the group's nodes.
  void Cut(size_t g) {
    Group devices = choice_.groups[g];
    std::stable_sort(devices.begin(), devices.end(), [this](int a, int b) { return NodeOf(a) < NodeOf(b); });
    End first, last;
    for (size_t begin = 0, end = 0; begin < devices.size(); begin = end) {
      while (end < devices.size() && NodeOf(devices[end]) == NodeOf(devices[begin])) ++end;
      const size_t middle = begin + (end - begin) / 2;
      for (size_t i = begin; i < end; ++i) (i < middle ? first : last).devices.push_back(devices[i]);
    }
    if (first.devices.empty()) return;
    for (End* half : {&first, &last}) {
      std::sort(half->devices.begin(), half->devices.end());
      half->tp = choice_.tp[g];
      while (static_cast<size_t>(half->tp) > half->devices.size()) half->tp /= 2;
    }
    Add({g}, std::move(first), std::move(last));
  }

  void Add(const std::set<size_t>& without, End first, End last) {
    TurnChoice& together = found_.emplace_back(choice_);
    together.groups.clear(), together.tp.clear();
    const auto append = [&](const Group& devices, int tp) { together.groups.push_back(devices), together.tp.push_back(tp); };
    append(first.devices, first.tp);
    for (size_t g = 0; g < choice_.groups.size(); ++g) {
      if (!without.contains(g)) append(choice_.groups[g], choice_.tp[g]);
    }
    append(last.devices, last.tp);
  }

  const Setting& setting_;
  const TurnChoice& choice_;
  std::vector<TurnChoice> found_;
};

}  // namespace

std::vector<TurnChoice> WithEndsTogether(const Setting& setting, const TurnChoice& choice) {
  const bool apart = setting.workload.model.tie_embeddings && choice.groups.size() > 1 && choice.groups.size() <= kMostGroups;
  if (!apart || !setting.request.pins.empty()) return {};
  return EndsTogether(setting, choice).All();
}

}  // namespace motley::planner
