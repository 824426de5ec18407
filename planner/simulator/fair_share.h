// Transfers in flight and how they share the links.
//
// Problem: flows f, each with loads bytes(f, r) on links r of capacity C(r). At every moment each flow moves all its loads in
// proportion; its *speed* is the bytes a second of its heaviest load, so it takes speed x w(f, r) of link r, where
// w(f, r) = bytes(f, r) / heaviest bytes of f. Speeds are max-min fair: none can grow without a slower or equal one shrinking.
// With one load a flow, or the same bytes on every link of its path, this is the classical max-min fairness of networks
// (Bertsekas, Gallager: Data Networks, section 6.5.2); with unequal loads it is dominant-resource fairness (Ghodsi et al.,
// NSDI'11) with bytes as the measure.
//
// Method: progressive filling. All speeds rise together; a flow stops where its own links end (its cap) or where a link that it
// shares is full. Only flows that are connected, over links that two or more use, with those that came or went are computed
// anew. Time of one Share: O(loads of these flows x log).
//
// Not thread-safe. Deterministic. Seconds are virtual.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planner/cluster/links.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

class FairShare {
 public:
  // `capacity` in bytes a second by link, all positive; must outlive this object.
  explicit FairShare(std::span<const double> capacity);

  // Puts a flow in flight. `name` is the caller's; at least one of `loads` has bytes. The slot is for Finish.
  int Start(int32_t name, std::span<const LinkLoad> loads, Picoseconds now);
  void Finish(int slot);

  struct Change {
    int32_t name = 0;
    Picoseconds end = 0;  // when the flow ends if nothing changes; never before `now`
  };
  // After a batch of Start and Finish at `now`: the flows whose speed has changed. The span lives until the next call.
  std::span<const Change> Share(Picoseconds now);

  double Speed(int slot) const { return flows_[slot].speed; }  // bytes a second of the heaviest load

 private:
  struct Use {  // w(f, r)
    int link = 0;
    double weight = 0;
  };
  struct Flow {
    int32_t name = 0;
    std::vector<Use> uses;  // of links that it has bytes on
    double cap = 0;         // speed when alone
    double left = 0;        // bytes of the heaviest load, at `since`
    Picoseconds since = 0;
    double speed = 0, next_speed = 0;
    bool in_group = false, rising = false;
  };
  struct Link {
    std::vector<int> flows;       // slots in flight
    double rest = 0, weight = 0;  // capacity that stopped flows leave; weight of those that still rise
    int rising = 0;
    bool in_group = false;
    bool shared() const { return flows.size() > 1; }
  };
  Flow& At(int slot) { return flows_[slot]; }
  Link& LinkAt(int link) { return links_[link]; }

  void AddFlow(int slot);
  void AddFlowsOf(int link);
  void CollectGroup();
  void Fill();
  void Stop(int slot, double speed);
  void UseNextSpeed(int slot, Picoseconds now);

  std::span<const double> capacity_;
  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<int> free_slots_;
  std::vector<int> started_, touched_links_;     // since the last Share
  std::vector<int> group_, group_links_;         // flows to compute anew, the links that they share
  std::vector<std::pair<double, int>> full_at_;  // heap of (speed at which the link is full, link); may lag behind
  std::vector<Change> changes_;
};

}  // namespace motley::planner
