#include <cstddef>
#include <set>
#include <utility>

#include "planner/lowering/rank_passes.h"

namespace motley::planner {
namespace {

class OperationPass {
 public:
  OperationPass(const StageSteps& stage, const RankTraits& rank) : stage_(stage), rank_(rank) {}

  std::vector<Operation> Run(const std::vector<MemberStep>& own) {
    for (const auto& [unit, buffer, group] : stage_.gathered) Add(Gather{unit, buffer, group});
    auto next = own.begin();
    for (size_t i = 0; i < stage_.steps.size(); ++i) {
      const StageStep& step = stage_.steps[i];
      for (; next != own.end() && next->step == i; ++next) AddMicrobatch(step, *next);
      for (const int32_t buffer : step.released) Add(Release{buffer});
      for (const auto& [unit, buffer, group] : step.gathered) Add(Gather{unit, buffer, group});
      for (const auto& [unit, buffer, group] : step.reduced) {
        if (written_.erase(buffer) == 0) Add(ZeroGrad{unit, buffer});
        Add(ReduceScatter{unit, buffer, group});
      }
    }
    Add(ReduceScalars{});
    if (rank_.training) Add(OptimizerStep{});
    return std::move(operations_);
  }

 private:
  void Add(Operation op) { operations_.push_back(std::move(op)); }

  void AddMicrobatch(const StageStep& step, const MemberStep& own) {
    const auto microbatch = static_cast<int32_t>(own.microbatch);
    const int32_t tied = step.unit == rank_.head ? stage_.tied_parameters : -1;
    const int32_t tied_grad = step.unit == rank_.head ? stage_.tied_gradients : -1;
    const bool recompute = rank_.recompute && step.unit > 0 && step.unit < rank_.head;
    const Keep keep = !rank_.training ? Keep::kNothing : recompute ? Keep::kBoundary : Keep::kAll;
    if (recompute && step.backward() && step.needs_parameters()) {
      AddTogether(Recompute{step.unit, microbatch, step.parameters, tied});
    }
    AddTransfers(own.receives);
    if (own.arrives && rank_.tp_group >= 0) {
      const Exchanged of = step.backward() ? Exchanged::kGradient : Exchanged::kActivation;
      Add(BroadcastActivation{step.backward() ? step.unit + 1 : step.unit, microbatch, of, rank_.tp_group, rank_.leader});
    }
    switch (step.kind) {
      case ActionKind::kForward:
        AddTogether(Forward{step.unit, microbatch, step.parameters, tied, keep});
        break;
      case ActionKind::kBackward:
        AddTogether(Backward{step.unit, microbatch, step.parameters, tied, step.gradients, tied_grad});
        break;
      case ActionKind::kInputGradient:
        AddTogether(BackwardInput{step.unit, microbatch, step.parameters, tied});
        break;
      case ActionKind::kWeightGradient:
        Add(BackwardWeight{step.unit, microbatch, step.gradients, tied_grad});
        break;
    }
    if (step.makes_gradients()) written_.insert({step.gradients, tied_grad});
    AddTransfers(own.sends);
  }
  // The ranks of a tensor-parallel unit compute it together.
  template <typename Op>
  void AddTogether(Op op) {
    op.tp_group = rank_.tp_group;
    Add(op);
  }
  void AddTransfers(const std::vector<Operation>& transfers) {
    for (const Operation& transfer : transfers) {
      if (!rank_.follows) Add(transfer);
    }
  }

  const StageSteps& stage_;
  const RankTraits& rank_;
  std::vector<Operation> operations_;
  std::set<int32_t> written_;  // gradient buffers, since they were reduced
};

}  // namespace

std::vector<Operation> OperationsOf(const StageSteps& stage, const std::vector<MemberStep>& own, const RankTraits& rank) {
  return OperationPass(stage, rank).Run(own);
}

}  // namespace motley::planner
