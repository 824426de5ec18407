#include "planner/search/regroup.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "planner/groups/megatron_layout.h"
#include "planner/search/plan_moves.h"
#include "planner/search/tied_ends.h"

namespace motley::planner {
namespace {

constexpr size_t kFewGroups = 6;  // between which devices go anywhere
constexpr size_t kNear = 2;       // else so many places further
constexpr double kFactors[] = {1, 1.5, 2, 3, 4, 8};

using Group = std::vector<int>;

class RegroupingGenerator {
 public:
  RegroupingGenerator(const Setting& setting, const TurnChoice& choice)
      : setting_(setting), choice_(choice), count_(choice.groups.size()) {}

  std::vector<TurnChoice> All() {
    if (setting_.request.pins.empty()) {
      Neighbours();
      Moves();
      TakeIn();
      for (TurnChoice& together : WithEndsTogether(setting_, choice_)) found_.push_back(std::move(together));
    }
    Degrees();
    Numbers();
    return std::move(found_);
  }

 private:
  TurnChoice& Add() { return found_.emplace_back(choice_); }

  int NodeOf(int device) const { return setting_.cluster.devices[device].node; }

  // A group's devices by node and kind.
  std::vector<Group> Leaves(const Group& group) const {
    std::map<std::pair<int, int>, Group> leaves;
    for (const int device : group) leaves[{NodeOf(device), setting_.KindOf(device)}].push_back(device);
    std::vector<Group> out;
    for (auto& [key, devices] : leaves) out.push_back(std::move(devices));
    return out;
  }
  // The first of those with the same card and number.
  std::vector<Group> UnlikeLeaves(const Group& group) const {
    std::set<std::pair<int, size_t>> seen;
    std::vector<Group> out;
    for (Group& leaf : Leaves(group)) {
      if (seen.insert({setting_.KindOf(leaf[0]), leaf.size()}).second) out.push_back(std::move(leaf));
    }
    return out;
  }

  static void Erase(size_t g, TurnChoice* choice) {
    choice->groups.erase(choice->groups.begin() + static_cast<std::ptrdiff_t>(g));
    choice->tp.erase(choice->tp.begin() + static_cast<std::ptrdiff_t>(g));
  }
  static void Insert(size_t at, Group group, int tp, TurnChoice* choice) {
    choice->groups.insert(choice->groups.begin() + static_cast<std::ptrdiff_t>(at), std::move(group));
    choice->tp.insert(choice->tp.begin() + static_cast<std::ptrdiff_t>(at), tp);
  }
  static void Join(const Group& devices, Group* group) {
    group->insert(group->end(), devices.begin(), devices.end());
    std::sort(group->begin(), group->end());
  }
  static void Remove(const Group& devices, Group* group) {
    std::erase_if(*group, [&](int d) { return std::find(devices.begin(), devices.end(), d) != devices.end(); });
  }

  // How a group looks from outside.
  std::vector<std::pair<int, int>> Look(size_t g) const {
    std::vector<std::pair<int, int>> look = {{choice_.tp[g], 0}};
    for (const int device : choice_.groups[g]) look.emplace_back(setting_.KindOf(device), 0);
    return look;
  }

  void Neighbours() {
    for (size_t g = 0; g + 1 < count_; ++g) {
      for (const int tp : std::set<int>{choice_.tp[g], choice_.tp[g + 1]}) {
        TurnChoice& joined = Add();
        Join(choice_.groups[g + 1], &joined.groups[g]);
        joined.tp[g] = tp;
        Erase(g + 1, &joined);
      }
      if (Look(g) == Look(g + 1)) continue;
      TurnChoice& exchanged = Add();
      std::swap(exchanged.groups[g], exchanged.groups[g + 1]);
      std::swap(exchanged.tp[g], exchanged.tp[g + 1]);
    }
    for (size_t g = 0; g < count_; ++g) Cut(g);
  }

  // Half of the nodes, or of the one node's devices, before the other half.
  void Cut(size_t g) {
    const std::vector<Group> leaves = Leaves(choice_.groups[g]);
    Group half;
    if (leaves.size() > 1) {
      for (size_t i = 0; i < leaves.size() / 2; ++i) Join(leaves[i], &half);
    } else {
      half.assign(leaves[0].begin(), leaves[0].begin() + static_cast<std::ptrdiff_t>(leaves[0].size() / 2));
    }
    if (half.empty()) return;
    TurnChoice& cut = Add();
    Remove(half, &cut.groups[g]);
    Insert(g, std::move(half), choice_.tp[g], &cut);
  }

  bool Near(size_t g, size_t h) const { return count_ <= kFewGroups || (g > h ? g - h : h - g) <= kNear; }

  void Moves() {
    for (size_t g = 0; g < count_; ++g) {
      for (const Group& leaf : UnlikeLeaves(choice_.groups[g])) {
        const auto unit = static_cast<size_t>(choice_.tp[g]);
        std::set<size_t> sizes = {leaf.size()};
        if (unit < leaf.size()) sizes.insert(unit);
        if (leaf.size() / 2 >= unit) sizes.insert(leaf.size() / 2);
        for (const size_t size : sizes) {
          if (size == choice_.groups[g].size()) continue;  // the group itself
          Move(g, {leaf.begin(), leaf.begin() + static_cast<std::ptrdiff_t>(size)});
        }
        LeaveOut(g, leaf);
      }
    }
  }

  void Move(size_t g, const Group& devices) {
    for (size_t h = 0; h < count_; ++h) {
      if (h == g || !Near(g, h)) continue;
      TurnChoice& moved = Add();
      Remove(devices, &moved.groups[g]);
      Join(devices, &moved.groups[h]);
    }
    for (const size_t at : {g, g + 1}) {
      TurnChoice& apart = Add();
      Remove(devices, &apart.groups[g]);
      Insert(at, devices, choice_.tp[g], &apart);
    }
  }

  void LeaveOut(size_t g, const Group& leaf) {
    if (count_ == 1 && leaf.size() == choice_.groups[0].size()) return;
    TurnChoice& without = Add();
    Remove(leaf, &without.groups[g]);
    if (without.groups[g].empty()) Erase(g, &without);
  }

  void TakeIn() {
    Group rest;
    for (int d = 0; d < setting_.num_devices(); ++d) rest.push_back(d);
    for (const Group& group : choice_.groups) Remove(group, &rest);
    for (const Group& leaf : UnlikeLeaves(rest)) {
      for (size_t g = 0; g < count_; ++g) {
        const bool alike = setting_.KindOf(choice_.groups[g][0]) == setting_.KindOf(leaf[0]);
        if (count_ > kFewGroups && !alike) continue;
        Join(leaf, &Add().groups[g]);
        Insert(g, leaf, choice_.tp[g], &Add());
      }
      Insert(count_, leaf, choice_.tp.back(), &Add());
    }
  }

  void Degrees() {
    const std::vector<int> degrees = TensorParallelDegrees(setting_.workload.model, setting_.request.max_tp);
    for (const int tp : degrees) {
      std::set<int> kinds;
      for (size_t g = 0; g < count_; ++g) {
        if (choice_.groups[g].size() < static_cast<size_t>(tp)) continue;
        kinds.insert(setting_.KindOf(choice_.groups[g][0]));
        // Of a few groups each on its own; of many only the next degree up and down.
        if (tp == choice_.tp[g] || (count_ > kFewGroups && tp != 2 * choice_.tp[g] && 2 * tp != choice_.tp[g])) continue;
        Add().tp[g] = tp;
      }
      for (const int kind : kinds) {
        TurnChoice all = choice_;
        size_t changed = 0;
        for (size_t g = 0; g < count_; ++g) {
          if (setting_.KindOf(choice_.groups[g][0]) != kind || choice_.groups[g].size() < static_cast<size_t>(tp)) continue;
          changed += all.tp[g] != tp;
          all.tp[g] = tp;
        }
        if (changed > 1) found_.push_back(std::move(all));
      }
    }
  }

  void Numbers() {
    const int64_t now = choice_.rounds;
    for (const int64_t rounds : std::set<int64_t>{now / 2, now * 3 / 4, now * 3 / 2, now * 2}) {
      if (rounds < 1 || rounds == now || rounds > setting_.workload.global_batch) continue;
      Add().rounds = rounds;
    }
    for (const double factor : kFactors) {
      if (factor == choice_.in_flight_factor) continue;
      Add().in_flight_factor = factor;
    }
    if (count_ > 1)
      Add().schedule = choice_.schedule == ScheduleFamily::k1F1B ? ScheduleFamily::kZeroBubble : ScheduleFamily::k1F1B;
    for (int zero = 0; zero <= 2 && !setting_.request.zero_stage; ++zero) {
      if (zero != choice_.zero_stage) Add().zero_stage = zero;
    }
    if (setting_.MayOffload().optimizer) Add().offload.optimizer = !choice_.offload.optimizer;
  }

  const Setting& setting_;
  const TurnChoice& choice_;
  const size_t count_;
  std::vector<TurnChoice> found_;
};

}  // namespace

std::vector<TurnChoice> Regrouped(const Setting& setting, const TurnChoice& choice) {
  return RegroupingGenerator(setting, choice).All();
}

}  // namespace motley::planner
