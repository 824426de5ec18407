#include <cstddef>
#include <utility>

#include "planner/lowering/rank_passes.h"

namespace motley::planner {
namespace {

class OperationPass {
 public:
  OperationPass(const StageSteps& stage, const StageMember& member, const RankTraits& rank)
      : stage_(stage),
        member_(member),
        rank_(rank),
        receive_(member.receives.begin()),
        send_(member.sends.begin()),
        written_(stage.gradient_buffers.size(), false) {}

  std::vector<Operation> Run() {
    const std::vector<MemberStep>& own = member_.steps;
    operations_.reserve(own.size() + member_.receives.size() + member_.sends.size() + stage_.steps.size());
    AddGathers(stage_.gathered);
    auto next = own.begin();
    for (size_t i = 0; i < stage_.steps.size(); ++i) {
      const StageStep& step = stage_.steps[i];
      for (; next != own.end() && next->step == i; ++next) AddMicrobatch(step, *next);
      for (const int32_t buffer : step.released) Add(Release{buffer});
      AddGathers(step.gathered);
      for (const auto& [unit, buffer, group, to_all, more_units] : step.reduced) {
        if (!written_[buffer]) Add(ZeroGrad{unit, buffer});
        written_[buffer] = false;
        to_all ? Add(AllReduce{unit, buffer, group}) : Add(ReduceScatter{unit, buffer, group});
      }
    }
    Add(ReduceScalars{});
    if (rank_.training) Add(OptimizerStep{});
    return std::move(operations_);
  }

 private:
  using Transfer = std::vector<Operation>::const_iterator;

  void Add(Operation op) { operations_.push_back(std::move(op)); }

  void AddGathers(const UnitCollectives& gathers) {
    for (const auto& [unit, buffer, group, to_all, more_units] : gathers) Add(Gather{unit, buffer, group, more_units});
  }

  void AddMicrobatch(const StageStep& step, const MemberStep& own) {
    const auto microbatch = static_cast<int32_t>(own.microbatch);
    const int32_t tied = step.last_unit() == rank_.head ? stage_.tied_parameters : -1;
    const int32_t tied_grad = step.last_unit() == rank_.head ? stage_.tied_gradients : -1;
    const bool recompute = !rank_.recompute.empty() && step.last_unit() > 0 && step.unit < rank_.head;
    const Keep keep = !rank_.training ? Keep::kNothing : recompute ? Keep::kBoundary : Keep::kAll;
    const uint32_t operators = keep == Keep::kBoundary ? rank_.recompute.InProgram() : 0;
    if (recompute && step.backward() && step.needs_parameters()) {
      AddTogether(step, own,
                  Recompute{.unit = step.unit,
                            .microbatch = microbatch,
                            .buffer = step.parameters,
                            .tied_buffer = tied,
                            .operators = operators});
    }
    AddTransfers(own.num_receives, &receive_);
    if (own.arrives && rank_.tp_group >= 0) {
      const Exchanged of = step.backward() ? Exchanged::kGradient : Exchanged::kActivation;
      Add(BroadcastActivation{step.backward() ? step.unit + 1 : step.unit, microbatch, of, rank_.tp_group, rank_.leader});
    }
    switch (step.kind) {
      case ActionKind::kForward:
        AddTogether(step, own,
                    Forward{.unit = step.unit,
                            .microbatch = microbatch,
                            .buffer = step.parameters,
                            .tied_buffer = tied,
                            .keep = keep,
                            .operators = operators});
        break;
      case ActionKind::kBackward:
        AddTogether(step, own, Backward{step.unit, microbatch, step.parameters, tied, step.gradients, tied_grad});
        break;
      case ActionKind::kInputGradient:
        AddTogether(step, own, BackwardInput{step.unit, microbatch, step.parameters, tied});
        break;
      case ActionKind::kWeightGradient:
        AddTogether(step, own, BackwardWeight{step.unit, microbatch, step.gradients, tied_grad});
        break;
    }
    for (const int32_t grad : {step.gradients, tied_grad}) {
      if (step.makes_gradients() && grad >= 0) written_[grad] = true;
    }
    AddTransfers(own.num_sends, &send_);
  }
  // Of all that the member does in the step. The ranks of a tensor-parallel unit compute it together.
  template <typename Op>
  void AddTogether(const StageStep& step, const MemberStep& own, Op op) {
    op.more_units = step.more_units;
    op.more_microbatches = static_cast<int32_t>(own.more_microbatches);
    if constexpr (requires { op.tp_group; }) op.tp_group = rank_.tp_group;
    Add(op);
  }
  void AddTransfers(int32_t count, Transfer* next) {
    if (!rank_.follows) operations_.insert(operations_.end(), *next, *next + count);
    *next += count;
  }

  const StageSteps& stage_;
  const StageMember& member_;
  const RankTraits& rank_;
  Transfer receive_, send_;  // the member's next ones
  std::vector<Operation> operations_;
  std::vector<bool> written_;  // by gradient buffer: since it was reduced
};

}  // namespace

std::vector<Operation> OperationsOf(const StageSteps& stage, const StageMember& member, const RankTraits& rank) {
  return OperationPass(stage, member, rank).Run();
}

}  // namespace motley::planner
