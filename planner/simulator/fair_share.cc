#include "planner/simulator/fair_share.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace motley::planner {

FairShare::FairShare(std::span<const double> capacity) : capacity_(capacity), links_(capacity.size()) {}

int FairShare::Start(int32_t name, std::span<const LinkLoad> loads, Picoseconds now) {
  int slot = static_cast<int>(flows_.size());
  if (free_slots_.empty()) {
    flows_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  double heaviest = 0;
  for (const LinkLoad& load : loads) heaviest = std::max(heaviest, load.bytes);
  Flow& flow = At(slot);
  flow.name = name;
  flow.uses.clear();
  flow.cap = std::numeric_limits<double>::infinity();
  flow.left = heaviest;
  flow.since = now;
  flow.speed = flow.next_speed = 0;
  for (const LinkLoad& load : loads) {
    if (load.bytes <= 0) continue;
    flow.uses.push_back({load.resource, load.bytes / heaviest});
    flow.cap = std::min(flow.cap, capacity_[load.resource] * (heaviest / load.bytes));
    LinkAt(load.resource).flows.push_back(slot);
  }
  started_.push_back(slot);
  return slot;
}

void FairShare::Finish(int slot) {
  for (const Use& use : At(slot).uses) {
    std::vector<int>& flows = LinkAt(use.link).flows;
    const auto it = std::find(flows.begin(), flows.end(), slot);
    *it = flows.back();
    flows.pop_back();
    if (!flows.empty()) touched_links_.push_back(use.link);
  }
  std::erase(started_, slot);
  free_slots_.push_back(slot);
}

void FairShare::AddFlow(int slot) {
  Flow& flow = At(slot);
  if (flow.in_group) return;
  flow.in_group = true;
  group_.push_back(slot);
}

void FairShare::AddFlowsOf(int link) {
  for (const int slot : LinkAt(link).flows) AddFlow(slot);
}

// Breadth first from what came and went; a link that only one flow uses connects nothing: the flow's cap speaks for it.
void FairShare::CollectGroup() {
  for (const int slot : started_) AddFlow(slot);
  for (const int link : touched_links_) AddFlowsOf(link);
  started_.clear();
  touched_links_.clear();
  for (size_t i = 0; i < group_.size(); ++i) {
    for (const Use& use : At(group_[i]).uses) {
      Link& link = LinkAt(use.link);
      if (!link.shared() || link.in_group) continue;
      link.in_group = true;
      group_links_.push_back(use.link);
      AddFlowsOf(use.link);
    }
  }
}

void FairShare::Stop(int slot, double speed) {
  Flow& flow = At(slot);
  flow.rising = false;
  flow.next_speed = speed;
  for (const Use& use : flow.uses) {
    Link& link = LinkAt(use.link);
    if (!link.shared()) continue;
    link.rest = std::max(0.0, link.rest - speed * use.weight);
    link.weight -= use.weight;
    --link.rising;
  }
}

void FairShare::Fill() {
  for (const int link : group_links_) {
    LinkAt(link).rest = capacity_[link];
    LinkAt(link).weight = 0;
    LinkAt(link).rising = 0;
  }
  for (const int slot : group_) {
    At(slot).rising = true;
    for (const Use& use : At(slot).uses) {
      Link& link = LinkAt(use.link);
      if (!link.shared()) continue;
      link.weight += use.weight;
      ++link.rising;
    }
  }
  full_at_.clear();
  for (const int link : group_links_) full_at_.emplace_back(LinkAt(link).rest / LinkAt(link).weight, link);
  std::make_heap(full_at_.begin(), full_at_.end(), std::greater<>());
  std::sort(group_.begin(), group_.end(),
            [this](int a, int b) { return At(a).cap != At(b).cap ? At(a).cap < At(b).cap : At(a).name < At(b).name; });

  double level = 0;  // Invariant: the speed of everything that still rises; it never falls.
  size_t next = 0;   // the rising flow with the smallest cap
  while (next < group_.size()) {
    if (!At(group_[next]).rising) {
      ++next;
      continue;
    }
    if (full_at_.empty() || At(group_[next]).cap <= full_at_.front().first) {
      level = At(group_[next]).cap;
      Stop(group_[next], level);
      continue;
    }
    const auto [full, index] = full_at_.front();
    std::pop_heap(full_at_.begin(), full_at_.end(), std::greater<>());
    full_at_.pop_back();
    Link& link = LinkAt(index);
    if (link.rising == 0) continue;
    // Flows that stopped meanwhile leave more to the others: a link's level can only have grown. Rounding must not undo that.
    const double now_full = link.weight > 0 ? std::max(level, link.rest / link.weight) : std::numeric_limits<double>::infinity();
    if (now_full > full) {
      full_at_.emplace_back(now_full, index);
      std::push_heap(full_at_.begin(), full_at_.end(), std::greater<>());
      continue;
    }
    level = std::max(level, full);
    for (const int slot : link.flows) {
      if (At(slot).rising) Stop(slot, level);
    }
  }
}

void FairShare::UseNextSpeed(int slot, Picoseconds now) {
  Flow& flow = At(slot);
  if (flow.next_speed == flow.speed) return;  // nothing to round anew
  flow.left = std::max(0.0, flow.left - flow.speed * ToSeconds(now - flow.since));
  flow.since = now;
  flow.speed = flow.next_speed;
  // Rounded up: a flow never ends before its last byte.
  const double ps = std::ceil(flow.left / flow.speed * kPicosecondsPerSecond);
  const double most = static_cast<double>(std::numeric_limits<Picoseconds>::max() - now);
  changes_.push_back({flow.name, ps < most ? now + static_cast<Picoseconds>(ps) : std::numeric_limits<Picoseconds>::max()});
}

std::span<const FairShare::Change> FairShare::Share(Picoseconds now) {
  changes_.clear();
  if (started_.empty() && touched_links_.empty()) return changes_;
  CollectGroup();
  Fill();
  for (const int slot : group_) {
    UseNextSpeed(slot, now);
    At(slot).in_group = false;
  }
  for (const int link : group_links_) LinkAt(link).in_group = false;
  group_.clear();
  group_links_.clear();
  return changes_;
}

}  // namespace motley::planner
