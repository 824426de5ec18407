// What one microbatch costs an actor: seconds of compute by unit of the model, and the tensor-parallel all-reduces in between.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/setting/setting.h"
#include "planner/view/part.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// One pass over a unit of each kind.
struct KindSeconds {
  double embedding = 0, layer = 0, head = 0;
  double Of(const Part& part) const {
    return (part.embedding ? embedding : 0) + static_cast<double>(part.layers) * layer + (part.head ? head : 0);
  }
};

// Of one microbatch. Ranks of a tensor-parallel unit meet after every product, so the slowest rank's time holds for all.
struct PassSeconds {
  KindSeconds forward, backward, backward_input, backward_weight;
  double layer_recompute = 0;

  double Forward(const Part& part) const { return forward.Of(part); }
  double Recompute(const Part& part) const { return static_cast<double>(part.layers) * layer_recompute; }
  // `splits`: in two instructions.
  double Backward(const Part& part, bool splits = false) const {
    return splits ? BackwardInput(part) + BackwardWeight(part) : backward.Of(part);
  }
  double BackwardInput(const Part& part) const { return backward_input.Of(part); }
  double BackwardWeight(const Part& part) const { return backward_weight.Of(part); }
};

// All-reduces of a tensor-parallel unit: two a layer forward and two backward (Megatron-LM section 3), one for a
// vocabulary-parallel embedding and one for the head's input gradient; recomputing an operator that ends in one repeats it.
struct PassReductions {
  double recompute = 0;  // of a layer
  double Forward(const Part& part) const { return 2 * static_cast<double>(part.layers) + (part.embedding ? 1 : 0); }
  double Recompute(const Part& part) const { return recompute * static_cast<double>(part.layers); }
  double Backward(const Part& part) const { return 2 * static_cast<double>(part.layers) + (part.head ? 1 : 0); }
};

// Of a unit of one rank alone.
PassSeconds SecondsOf(const Costs& costs, const RankView& rank, int64_t microbatch);

// Looked up by microbatch size; each actor has few sizes.
class SecondsTable {
 public:
  SecondsTable(const Setting& setting, const PlanView& view) : setting_(setting), view_(view), actors_(view.actors.size()) {}
  PassSeconds Of(int actor, int64_t microbatch);
  PassReductions ReductionsOf(int actor) const;
  // Of the actor's part of `elements` of its stage: the slowest rank's.
  double OptimizerSeconds(int actor, double elements) const;

 private:
  struct Entry {
    int64_t microbatch = 0;
    PassSeconds seconds;
  };
  const Setting& setting_;
  const PlanView& view_;
  std::vector<std::vector<Entry>> actors_;
};

// The part of a stage's state that a rank's optimizer steps.
double OwnedPart(const PlanView& view, const RankView& rank);

}  // namespace motley::planner
