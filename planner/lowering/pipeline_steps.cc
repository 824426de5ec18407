#include "planner/lowering/pipeline_steps.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/lowering/stage_passes.h"

namespace motley::planner {
namespace {

// Searches' programs, whose members are classes and whose units are blocks.
void Coarsen(const StateInTurn& state, StageTraits* traits) {
  traits->alone = !state.shared() && !state.across && !state.Gathers() && !state.SumsLeave();
  traits->joins = true;
  traits->streams = state.GathersEveryRound();
}

// Units of the largest ministage that come in turn: a tied embedding stays.
int64_t LargestMinistage(const StageTraits& traits) {
  int64_t largest = 0;
  for (const std::vector<int32_t>& units : traits.units_of) {
    const int64_t kept = traits.tied ? std::count(units.begin(), units.end(), 0) : 0;
    largest = std::max(largest, static_cast<int64_t>(units.size()) - kept);
  }
  return largest;
}

StageTraits TraitsOfStage(const WrittenPass& pass, int s) {
  const StageView& stage = pass.view.stages[s];
  StateInTurn state = stage.state;
  state.keeps_two_ministages &= !pass.merged;  // there a block is a ministage
  StageTraits traits;
  for (const Element& element : pass.view.pipelines[stage.pipeline].elements) {
    traits.units_of.push_back(element.stage == s ? BlocksOf(pass.blocks, element) : std::vector<int32_t>());
    traits.units.insert(traits.units.end(), traits.units_of.back().begin(), traits.units_of.back().end());
  }
  std::sort(traits.units.begin(), traits.units.end());
  traits.elements = pass.blocks.elements;
  traits.tied = pass.setting.workload.model.tie_embeddings;
  traits.gathers_in_turn = state.Gathers();
  traits.reduces_in_turn = state.Reduces() && (state.shared() || !pass.merged);
  traits.sums_once = state.SumsLeave();
  traits.by_block = state.GathersByUnit();
  traits.gathers_by_ministage = state.GathersByMinistage();
  traits.parameters_in_turn = static_cast<int32_t>(state.ParameterBuffers(LargestMinistage(traits)));
  traits.reduces_every_round = !state.layered() && traits.reduces_in_turn;
  traits.group = s;
  if (stage.embedding || stage.head) traits.tied_group = pass.places.tied_group[stage.pipeline];
  traits.sum_group = pass.places.sum_group;
  traits.gather_order = pass.places.gather_order;
  traits.sum_order = pass.places.sum_order;
  if (pass.merged) Coarsen(state, &traits);
  return traits;
}

bool SharesTensorParallel(const StageView& stage) { return stage.shared() && stage.num_ranks > stage.num_units; }

// The stage's steps, as its members go through them.
StageSteps StepsOf(const WrittenPass& pass, const StageView& stage, const StageSchedule& schedule, const StageTraits& traits,
                   ReductionOrder order) {
  StageSteps steps = WithParameters(ComputeSteps(schedule, traits), traits);
  if (pass.training) steps = WithGradients(std::move(steps), traits);
  if (pass.merged || stage.num_ranks == stage.num_units) return steps;
  // Its sums inside would wait for other pipelines, which may be slower by far. What comes and goes in turn is its own alone.
  if (traits.across() && !traits.reduces_in_turn) return WithRoomForSums(std::move(steps), ReductionOrder::kBehindSums);
  if (!stage.shared()) return steps;
  return WithRoomForSums(std::move(steps), traits.reduces_in_turn ? ReductionOrder::kAtOnce : order);
}

void Shift(int64_t samples, PipelineSchedule* schedule) {
  for (StageSchedule& stage : schedule->stages) {
    for (MemberMicrobatches& member : stage.members) {
      for (ScheduledMicrobatch& microbatch : member) microbatch.first += samples;
    }
  }
}

absl::StatusOr<PipelineSteps> StepsInOrder(const WrittenPass& pass, size_t p, const PipelineSchedule& schedule,
                                           const PipelineWalk& walk, int64_t first_sample, ReductionOrder order) {
  const PipelineView& pipeline = pass.view.pipelines[p];
  const Joined joined = !pass.merged ? Joined::kNone : pipeline.num_stages > 1 ? Joined::kInside : Joined::kAll;
  PipelineSteps result;
  result.schedule = schedule;
  Shift(first_sample, &result.schedule);
  int actor = pass.view.stages[pipeline.first_stage].actors.front();
  for (size_t s = 0; s < schedule.stages.size(); ++s) {
    const int stage = pipeline.first_stage + static_cast<int>(s);
    result.traits.push_back(TraitsOfStage(pass, stage));
    result.traits.back().sums_at_once = schedule.sums_at_once;
    result.stages.push_back(StepsOf(pass, pass.view.stages[stage], schedule.stages[s], result.traits[s], order));
    for (size_t m = 0; m < schedule.stages[s].members.size(); ++m, ++actor) {
      const int32_t rank = pass.merged ? actor : pass.view.actors[actor].first_rank;
      std::vector<MemberStep> steps = MemberSteps(result.stages[s], schedule.stages[s].members[m], walk.times[s][m], joined);
      result.members.push_back({s, m, rank, std::move(steps), {}, {}, {}});
    }
  }
  MOTLEY_ASSIGN_OR_RETURN(result.members, WithTransfers(std::move(result.members), result.stages, result.schedule));
  return result;
}

// Each as large as the largest that comes into it.
class SlotSizes {
 public:
  SlotSizes(const WrittenPass& pass, int32_t rank, const Program& program) : pass_(pass), rank_(rank), program_(program) {}

  std::vector<int64_t> Run() {
    for (const Instruction& instruction : program_.instructions) {
      if (const auto* input = std::get_if<PrefetchActivation>(&instruction.op)) Needs(input->slot, BytesOf(*input));
      if (const auto* state = std::get_if<PrefetchOptimizer>(&instruction.op)) Needs(state->slot, BytesOf(*state));
    }
    return std::move(slots_);
  }

 private:
  void Needs(int32_t index, int64_t bytes) {
    const auto slot = static_cast<size_t>(index);
    if (slots_.size() <= slot) slots_.resize(slot + 1, 1);
    slots_[slot] = std::max(slots_[slot], bytes);
  }
  int64_t BytesOf(const PrefetchActivation& input) const {
    int64_t samples = 0;
    for (int32_t m = input.microbatch; m <= input.microbatch + input.more_microbatches; ++m) {
      samples += program_.microbatches[static_cast<size_t>(m)].samples;
    }
    return (input.more_units + 1) * pass_.setting.costs.BoundaryBytes(static_cast<double>(samples));
  }
  int64_t BytesOf(const PrefetchOptimizer& state) const {
    if (pass_.ownership == nullptr) return 0;
    int64_t owned = 0;
    for (int32_t unit = state.unit; unit <= state.unit + state.more_units; ++unit) {
      owned += pass_.ownership->NumOwned(unit, rank_);
    }
    return pass_.setting.costs.InHost(program_.offloads, static_cast<double>(owned)).AreaBytes();
  }

  const WrittenPass& pass_;
  const int32_t rank_;
  const Program& program_;
  std::vector<int64_t> slots_;
};

}  // namespace

absl::StatusOr<PipelineSteps> StepsOfPipeline(const WrittenPass& pass, size_t p, const PipelineSchedule& schedule,
                                              const PipelineWalk& walk, int64_t first_sample) {
  const auto in_order = [&](ReductionOrder order) { return StepsInOrder(pass, p, schedule, walk, first_sample, order); };
  absl::StatusOr<PipelineSteps> at_once = in_order(ReductionOrder::kAtOnce);
  // A sum that waits for a reduction waits for all of the stage, and they may wait for what it is to hand over.
  const PipelineView& pipeline = pass.view.pipelines[p];
  const auto stage = pass.view.stages.begin() + pipeline.first_stage;
  if (at_once.ok() || pass.merged || !std::any_of(stage, stage + pipeline.num_stages, SharesTensorParallel)) return at_once;
  return in_order(ReductionOrder::kBehindSums);
}

CopyTraits CopiesOf(const WrittenPass& pass, int first_rank, int num_ranks, const StageTraits& traits) {
  const StageView& stage = pass.view.stages[pass.view.ranks[first_rank].stage];
  CopyTraits copies{.rank = first_rank};
  for (int r = first_rank; r < first_rank + num_ranks; ++r) {
    copies.offloads = copies.offloads.Or(pass.view.ranks[r].plan->offload);
  }
  if (!pass.training) copies.offloads = copies.offloads.And({.parameters = true});
  copies.steps_in_turn = pass.training && stage.state.steps_in_turn;
  copies.sums_stay = traits.reduces_in_turn && !traits.reduces_every_round;
  copies.units = traits.units;
  copies.prefetch = stage.plan->prefetch;
  copies.head = pass.blocks.head();
  return copies;
}

Program ProgramOf(const WrittenPass& pass, const PipelineSteps& pipeline, const StageSteps& slice, const StageMember& member,
                  const RankTraits& rank, const CopyTraits& copies) {
  Program program;
  program.kind = pass.training ? ProgramKind::kTraining : ProgramKind::kEvaluation;
  program.num_units = pass.blocks.head() + 1;
  program.units = pipeline.traits[member.stage].units;
  for (const ScheduledMicrobatch& own : pipeline.schedule.stages[member.stage].members[member.index]) {
    program.microbatches.push_back({own.samples, own.first});
  }
  program.parameter_buffers = slice.parameter_buffers;
  program.gradient_buffers = slice.gradient_buffers;
  RankOperations operations = OperationsOf(slice, member, rank);
  program.offloads = copies.offloads;
  if (copies.offloads.any() || copies.steps_in_turn) operations.operations = WithCopies(std::move(operations.operations), copies);
  operations.copies_ahead = copies.slots();
  program.instructions = WithDependencies(std::move(operations));
  program.slots = SlotSizes(pass, copies.rank, program).Run();
  return program;
}

}  // namespace motley::planner
