// What one microbatch costs those who compute it: seconds by unit of the model and pass, and the tensor-parallel all-reduces in
// between. Of ranks' programs, of classes' and of the estimator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/model/parameters.h"
#include "common/program/program.h"
#include "planner/costs/costs.h"
#include "planner/simulator/step_graph.h"
#include "planner/view/part.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// What an operation computes.
constexpr TaskKind PassOf(const Forward&) { return TaskKind::kForward; }
constexpr TaskKind PassOf(const Recompute&) { return TaskKind::kRecompute; }
constexpr TaskKind PassOf(const Backward&) { return TaskKind::kBackward; }
constexpr TaskKind PassOf(const BackwardInput&) { return TaskKind::kBackwardInput; }
constexpr TaskKind PassOf(const BackwardWeight&) { return TaskKind::kBackwardWeight; }

// Of one microbatch. Ranks of a tensor-parallel unit meet after every product, so the slowest rank's time holds for all.
struct PassSeconds {
  std::array<double, 15> of_unit = {};  // by pass and kind of unit
  static size_t Index(TaskKind pass, UnitKind unit) { return 3 * static_cast<size_t>(pass) + static_cast<size_t>(unit); }

  double Of(TaskKind pass, const Part& part) const {
    return part.Sum([&](UnitKind unit) { return of_unit[Index(pass, unit)]; });
  }
  double Forward(const Part& part) const { return Of(TaskKind::kForward, part); }
  double Recompute(const Part& part) const { return Of(TaskKind::kRecompute, part); }
  // `splits`: in two instructions.
  double Backward(const Part& part, bool splits = false) const {
    return splits ? BackwardInput(part) + BackwardWeight(part) : Of(TaskKind::kBackward, part);
  }
  double BackwardInput(const Part& part) const { return Of(TaskKind::kBackwardInput, part); }
  double BackwardWeight(const Part& part) const { return Of(TaskKind::kBackwardWeight, part); }
};

// Of a unit of one rank alone. `again`: the operators of a layer that it recomputes; else those that the plan says. Embedding and
// head are never recomputed.
PassSeconds SecondsOf(const Costs& costs, const RankView& rank, int64_t microbatch, std::optional<OpSet> again = std::nullopt);

// The part of a whole unit's seconds that a segment takes.
double SegmentPart(const Costs& costs, int kind, UnitSegment segment);

// All-reduces of a microbatch's activations inside a tensor-parallel unit: two a layer forward and two backward (Megatron-LM
// section 3), one for a vocabulary-parallel embedding and one for the head's input gradient. Ranks keep what they have summed, so
// recomputation sums nothing.
double SumsInside(TaskKind pass, const Part& part);

// Looked up by microbatch size; each actor has few sizes.
class SecondsTable {
 public:
  // All outlive the table. `actors`: of the ranks.
  SecondsTable(const Costs& costs, const std::vector<RankView>& ranks, const std::vector<ActorView>& actors)
      : costs_(costs), ranks_(ranks), actors_(actors), entries_(actors.size()) {}
  // Of a unit of the actor. Good until the next call.
  const PassSeconds& Of(size_t actor, int64_t microbatch, std::optional<OpSet> again = std::nullopt);

 private:
  struct Entry {
    int64_t microbatch = 0;
    std::optional<OpSet> again;
    PassSeconds seconds;
  };
  const Costs& costs_;
  const std::vector<RankView>& ranks_;
  const std::vector<ActorView>& actors_;
  std::vector<std::vector<Entry>> entries_;  // by actor
};

}  // namespace motley::planner
