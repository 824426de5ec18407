#include <cstddef>
#include <span>
#include <utility>

#include "planner/lowering/rank_passes.h"

namespace motley::planner {
namespace {

// What a rank of a tensor-parallel unit computes in one piece, and what of it the ranks then sum.
struct UnitPart {
  UnitSegment segment = UnitSegment::kWhole;
  bool is_summed = false;
  Exchanged of = Exchanged::kActivation;
  UnitSegment behind = UnitSegment::kWhole;  // what the sum is said to be of
};
constexpr UnitPart kEmbeddingForward[] = {{UnitSegment::kWhole, true, Exchanged::kActivation}};
constexpr UnitPart kEmbeddingBackward[] = {{}};
constexpr UnitPart kLayerForward[] = {{UnitSegment::kAttention, true, Exchanged::kActivation, UnitSegment::kAttention},
                                      {UnitSegment::kMlp, true, Exchanged::kActivation}};
constexpr UnitPart kLayerBackward[] = {{UnitSegment::kMlp, true, Exchanged::kGradient, UnitSegment::kMlp},
                                       {UnitSegment::kAttention, true, Exchanged::kGradient}};
constexpr UnitPart kHeadForward[] = {{UnitSegment::kLogits, true, Exchanged::kRows, UnitSegment::kLogits}, {UnitSegment::kLoss}};
constexpr UnitPart kHeadBackward[] = {{UnitSegment::kWhole, true, Exchanged::kGradient}};

class OperationPass {
 public:
  OperationPass(const StageSteps& stage, const StageMember& member, const RankTraits& rank)
      : stage_(stage),
        member_(member),
        rank_(rank),
        receive_(member.receives.begin()),
        send_(member.sends.begin()),
        written_(stage.gradient_buffers.size(), false) {}

  RankOperations Run() {
    const std::vector<MemberStep>& own = member_.steps;
    operations_.reserve(own.size() + member_.receives.size() + member_.sends.size() + stage_.steps.size());
    AddGathers(stage_.gathered);
    auto next = own.begin();
    for (size_t i = 0; i < stage_.steps.size(); ++i) {
      const StageStep& step = stage_.steps[i];
      for (; next != own.end() && next->step == i; ++next) {
        computed_before_.push_back(num_computed_);
        AddMicrobatch(step, *next);
      }
      for (const int32_t buffer : step.released) Add(Release{buffer});
      AddGathers(step.gathered);
      AddReductions(step.reduced);
    }
    Add(ReduceScalars{});
    if (rank_.training) Add(OptimizerStep{});
    return {std::move(operations_), std::move(computed_when_sent_)};
  }

 private:
  using Transfer = std::vector<Operation>::const_iterator;

  void Add(Operation op) { operations_.push_back(std::move(op)); }
  void Compute(Operation op) {
    ++num_computed_;
    Add(std::move(op));
  }

  void AddGathers(const UnitCollectives& gathers) {
    for (const UnitCollective& gather : gathers) {
      Add(Gather{gather.unit, gather.buffer, gather.group, gather.more_units, gather.elements});
    }
  }
  void AddReductions(const UnitCollectives& reductions) {
    const UnitCollective* before = nullptr;  // of an array that is reduced in ranges
    for (const UnitCollective& sum : reductions) {
      const bool goes_on = before != nullptr && before->unit == sum.unit && !sum.elements.whole();
      const bool is_shard = stage_.gradient_buffers[sum.buffer].IsShard();  // other sums have gone there
      if (!goes_on && !is_shard && !written_[sum.buffer]) Add(ZeroGrad{sum.unit, sum.buffer});
      written_[sum.buffer] = false;
      Add(ReduceScatter{sum.unit, sum.buffer, sum.group, 0, sum.elements});
      before = &sum;
    }
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
    for (int32_t i = 0; i < own.num_receives && !rank_.follows; ++i) {
      const size_t passed = member_.passed_when_sent[static_cast<size_t>(receive_ - member_.receives.begin() + i)];
      computed_when_sent_.push_back(computed_before_[passed]);
    }
    AddTransfers(own.num_receives, &receive_);
    if (own.arrives && rank_.tp_group >= 0) {
      const Exchanged of = step.backward() ? Exchanged::kGradient : Exchanged::kActivation;
      Add(BroadcastActivation{step.backward() ? step.unit + 1 : step.unit, microbatch, of, rank_.tp_group, rank_.leader});
    }
    switch (step.kind) {
      case ActionKind::kForward:
        AddSummed(step, own,
                  Forward{.unit = step.unit,
                          .microbatch = microbatch,
                          .buffer = step.parameters,
                          .tied_buffer = tied,
                          .keep = keep,
                          .operators = operators});
        break;
      case ActionKind::kBackward:
        AddSummed(step, own, Backward{step.unit, microbatch, step.parameters, tied, step.gradients, tied_grad});
        break;
      case ActionKind::kInputGradient:
        AddSummed(step, own, BackwardInput{step.unit, microbatch, step.parameters, tied});
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
  // Of all that the member does in the step.
  template <typename Op>
  void AddTogether(const StageStep& step, const MemberStep& own, Op op) {
    op.more_units = step.more_units;
    op.more_microbatches = static_cast<int32_t>(own.more_microbatches);
    Compute(op);
  }
  // The same where the ranks of a tensor-parallel unit sum what they make of it, behind each part.
  template <typename Op>
  void AddSummed(const StageStep& step, const MemberStep& own, Op op) {
    if (rank_.tp_group < 0) return AddTogether(step, own, op);
    for (const UnitPart& part : PartsOf(step)) {
      op.segment = part.segment;
      Compute(op);
      if (part.is_summed) Add(AllReduceActivation{op.unit, op.microbatch, part.of, rank_.tp_group, part.behind});
    }
  }
  std::span<const UnitPart> PartsOf(const StageStep& step) const {
    if (step.unit == 0) return step.backward() ? std::span<const UnitPart>(kEmbeddingBackward) : kEmbeddingForward;
    if (step.unit == rank_.head) return step.backward() ? std::span<const UnitPart>(kHeadBackward) : kHeadForward;
    return step.backward() ? kLayerBackward : kLayerForward;
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
  int64_t num_computed_ = 0;                 // passes of units
  std::vector<int64_t> computed_before_;     // by step of the member
  std::vector<int64_t> computed_when_sent_;  // by receive
  std::vector<bool> written_;                // by gradient buffer: since it was reduced
};

}  // namespace

RankOperations OperationsOf(const StageSteps& stage, const StageMember& member, const RankTraits& rank) {
  return OperationPass(stage, member, rank).Run();
}

}  // namespace motley::planner
