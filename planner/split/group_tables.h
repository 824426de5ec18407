// A group's question as the tables that the split solver reads: like devices as kinds, seconds and bytes by microbatch size,
// collectives by largest share. Tables grow as far as the solver asks.
//
// Bytes come from the one ledger (memory_model.h) by asking it at a few counts of microbatches: what a rank needs beside its
// state is described by one or two lines in the count, with slopes proportional to the microbatch's samples, up to the count that
// is alive at a time. The description is not below the ledger but for a turn between its two lines; group_split.cc checks.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/costs/memory_model.h"
#include "planner/split/group_split.h"
#include "planner/split/split_problem.h"

namespace motley::planner {

// A pass's collectives, alone on the links.
struct GroupCollectives {
  double gather_seconds = 0, reduce_seconds = 0;  // all parameters (gradients) of the group once, unit by unit
  double all_reduce_seconds = 0;
};
// `largest_share` of one device, the others alike; 1: some device owning nothing, so that a hop of the ring carries everything.
GroupCollectives CollectivesOfGroup(const Setting& setting, const GroupQuestion& question, double largest_share);

RankDuty DutyOf(const Setting& setting, const GroupQuestion& question, int device, double share, bool recompute);

class GroupTables {
 public:
  // Both outlive this.
  GroupTables(const Setting& setting, const GroupQuestion& question);

  SplitProblem* problem() { return &problem_; }
  const std::vector<std::vector<size_t>>& members() const { return members_; }  // by kind: into question.devices
  // Makes the tables of a kind reach to `size` samples.
  void Extend(size_t kind, int64_t size);
  int64_t largest_microbatch() const { return largest_microbatch_; }
  // Seconds that neither pass hides: the gather after the optimizer (ZeRO 1 and 2), the gradients' all-reduce (ZeRO 0).
  double ExposedSeconds(size_t level) const { return exposed_seconds_[level]; }

 private:
  // Two lines for each policy: bytes that every sample in flight adds.
  struct Slopes {
    int64_t first = 0, later = 0;
  };
  struct KindSource {
    int device = 0;
    int64_t stored_bytes = 0;            // beside samples and sharded state
    double host_seconds_per_sample = 0;  // boundaries to or from host memory, a pass
    Slopes keep, recompute;
  };

  void AddKinds();
  void AddLevels();
  Slopes FindSlopes(const RankDuty& duty) const;
  int64_t InFlight(const RankDuty& duty) const;
  int64_t Bytes(const RankDuty& duty, int64_t count, int64_t size) const;
  void ExtendTerms(const KindSource& source, bool recompute, int64_t size, std::vector<MemoryTerm>* terms) const;

  const Setting& setting_;
  const GroupQuestion& question_;
  SplitProblem problem_;
  std::vector<std::vector<size_t>> members_;
  std::vector<KindSource> sources_;
  std::vector<double> exposed_seconds_;
  double forward_floor_ = 0, backward_floor_ = 0;  // of every microbatch, where collectives run once for each
  int64_t largest_microbatch_ = 1;
};

}  // namespace motley::planner
