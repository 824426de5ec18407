#include "planner/lowering/program_writer.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/lowering/hand_over_order.h"
#include "planner/lowering/pipeline_places.h"
#include "planner/lowering/rank_writer.h"
#include "planner/lowering/stage_script.h"
#include "planner/lowering/step_lowering_routes.h"
#include "planner/lowering/step_lowering_view.h"
#include "planner/plan/schedule_walk.h"
#include "planner/plan/validation_pass.h"

namespace motley::planner {
namespace {

// All ranks of one pipeline of single-device units.
class Writer {
 public:
  Writer(const Setting& setting, const PlanView& view, const PipelineSchedule& schedule, const PipelineWalk& walk, bool training)
      : view_(view),
        pipeline_(view.pipelines.front()),
        walk_(walk),
        training_(training),
        head_(static_cast<int32_t>(setting.workload.model.num_layers) + 1),
        places_(PlacesOf(setting, view)),
        routes_(view, pipeline_),
        ranks_(view.ranks.size()),
        slowest_(view.stages.size(), 0) {
    for (int s = 0; s < pipeline_.num_stages; ++s) {
      scripts_.push_back(ScriptOf(setting, view, s, schedule.stages[s], training));
      AddRounds(schedule.stages[s]);
    }
    for (size_t r = 0; r < ranks_.size(); ++r) StartRank(static_cast<int>(r));
  }

  // INTERNAL: the ranks would wait for each other, although the schedule says that they do not.
  absl::StatusOr<std::vector<Program>> Write() {
    for (size_t r = 0; r < ranks_.size(); ++r) Begin(static_cast<int>(r));
    do {
      for (int rank = Next(); rank >= 0; rank = Next()) Compute(rank);
    } while (Come(hand_overs_.All()));
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].use < ScriptOfRank(static_cast<int>(r)).uses.size()) return Stuck();
    }
    std::vector<Program> programs;
    for (Rank& rank : ranks_) {
      End(&rank);
      programs.push_back(std::move(*rank.writer).Finish());
      if (const absl::Status valid = Validate(programs.back()); !valid.ok()) return absl::InternalError(valid.message());
    }
    return programs;
  }

 private:
  struct Rank {
    int actor = 0, stage = 0;
    bool recompute = false;
    std::unique_ptr<RankWriter> writer;
    size_t use = 0;          // in the stage's script
    int64_t microbatch = 0;  // done in the use
    std::deque<ComingPiece> coming;
    std::deque<int32_t> sends;  // instructions whose pieces have no order yet
    // Samples that microbatches still miss at a border: backward, unit, microbatch.
    std::map<std::tuple<bool, int32_t, int64_t>, int64_t> missing;
    std::map<std::tuple<bool, int32_t, int64_t>, int32_t> received;  // instruction
    int32_t last_compute = -1;
    double next = kNever;  // when it comes to what it computes next
  };
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  const StageScript& ScriptOfRank(int rank) const { return scripts_[ranks_[rank].stage]; }
  const ActorView& ActorOf(const Rank& rank) const { return view_.actors[rank.actor]; }
  int RankOf(int actor) const { return view_.actors[actor].first_rank; }

  // ---- before the walk ----

  // Members of a stage are its ranks.
  void AddRounds(const StageSchedule& stage) {
    std::vector<int64_t>& samples = samples_of_round_.emplace_back(static_cast<size_t>(NumRounds(stage)), 0);
    for (const MemberMicrobatches& member : stage.members) {
      std::vector<int64_t>& of_round = microbatch_of_round_.emplace_back(static_cast<size_t>(NumRounds(stage)), -1);
      std::vector<int64_t>& round_of = round_of_microbatch_.emplace_back();
      for (size_t k = 0; k < member.size(); ++k) {
        of_round[member[k].round] = static_cast<int64_t>(k);
        round_of.push_back(member[k].round);
        samples[member[k].round] += member[k].samples;
      }
    }
  }

  void StartRank(int r) {
    Rank& rank = ranks_[r];
    const RankView& rank_view = view_.ranks[r];
    rank.actor = view_.actor_of_rank[r];
    rank.stage = rank_view.stage;
    rank.recompute = rank_view.recompute.all();
    const StageScript& script = scripts_[rank.stage];
    Program header;
    header.kind = training_ ? ProgramKind::kTraining : ProgramKind::kEvaluation;
    header.rank = r;
    header.world = static_cast<int32_t>(ranks_.size());
    header.num_units = head_ + 1;
    header.units = script.units;
    header.groups = places_.groups;
    const ActorView& actor = ActorOf(rank);
    for (int64_t k = 0; k < actor.count(); ++k) header.microbatches.push_back({actor.size(k), actor.begin[k]});
    header.parameter_buffers = script.parameter_buffers;
    header.gradient_buffers = script.gradient_buffers;
    rank.writer = std::make_unique<RankWriter>(std::move(header));
    for (const int32_t unit : script.units) {
      for (int64_t k = 0; k < actor.count(); ++k) {
        if (places_.backward_borders[unit].element >= 0) rank.missing[{false, unit, k}] = actor.size(k);
        if (places_.forward_borders[unit].element >= 0) rank.missing[{true, unit + 1, k}] = actor.size(k);
      }
    }
  }

  void Begin(int r) {
    const StageScript& script = ScriptOfRank(r);
    RankWriter& writer = *ranks_[r].writer;
    if (script.tied_parameters >= 0) writer.AddGather(0, script.tied_parameters, places_.tied_group);
    for (const auto& [unit, buffer] : script.before.gathered) writer.AddGather(unit, buffer, ranks_[r].stage);
    PassEmptyUses(r);
  }

  // ---- the walk ----

  // Microbatches of the rank in a use.
  std::pair<int64_t, int64_t> MicrobatchesIn(const Rank& rank, const UnitUse& use) const {
    if (use.round == kAllRounds) return {0, ActorOf(rank).count()};
    const int64_t microbatch = microbatch_of_round_[ActorOf(rank).first_rank][use.round];
    return {microbatch, microbatch < 0 ? microbatch : microbatch + 1};
  }
  int64_t MicrobatchOf(const Rank& rank, const UnitUse& use) const { return MicrobatchesIn(rank, use).first + rank.microbatch; }

  bool Ready(int r) const {
    const Rank& rank = ranks_[r];
    const UnitUse& use = ScriptOfRank(r).uses[rank.use];
    if (use.waits_for >= 0 && slowest_[rank.stage] <= static_cast<size_t>(use.waits_for)) return false;
    const auto missing = rank.missing.find({use.backward, use.backward ? use.unit + 1 : use.unit, MicrobatchOf(rank, use)});
    return missing == rank.missing.end() || missing->second == 0;
  }

  // Of the ranks that can go on the one that comes to its work first; -1 = none.
  int Next() const {
    int best = -1;
    double first = kNever;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].next >= first || !Ready(static_cast<int>(r))) continue;
      first = ranks_[r].next;
      best = static_cast<int>(r);
    }
    return best;
  }

  // After every change of the rank's use or microbatch.
  void FindNext(Rank* rank) {
    const StageScript& script = scripts_[rank->stage];
    rank->next = kNever;
    if (rank->use >= script.uses.size()) return;
    const UnitUse& use = script.uses[rank->use];
    rank->next = EndOf(*rank, use);
  }

  // When the rank is done with the use's next microbatch, by the schedule. Microbatch by microbatch a unit is a part of the
  // microbatch's time; block by block it is a part of the time of all of them.
  double EndOf(const Rank& rank, const UnitUse& use) const {
    const size_t member = static_cast<size_t>(ActorOf(rank).first_rank - view_.stages[rank.stage].first_rank);
    const LogicalTimes& times = walk_.times[rank.stage][member];
    const LogicalSpan& own = times.At(use.backward, use.virtual_stage, MicrobatchOf(rank, use));
    if (use.round != kAllRounds) return own.begin + (own.end - own.begin) * (use.place + 1) / use.num_places;
    const double begin = times.At(use.backward, use.virtual_stage, 0).begin;
    const double end = times.At(use.backward, use.virtual_stage, ActorOf(rank).count() - 1).end;
    return begin + ((end - begin) * use.place + (own.end - begin)) / use.num_places;
  }

  void Compute(int r) {
    Rank& rank = ranks_[r];
    const StageScript& script = ScriptOfRank(r);
    const UnitUse& use = script.uses[rank.use];
    const int64_t k = MicrobatchOf(rank, use);
    use.backward ? Backward(&rank, use, k) : Forward(&rank, use, k);
    Deliver(r, use, k);
    const auto [first, last] = MicrobatchesIn(rank, use);
    if (first + ++rank.microbatch < last) return FindNext(&rank);
    FinishUse(r);
    PassEmptyUses(r);
  }

  void PassEmptyUses(int r) {
    const StageScript& script = ScriptOfRank(r);
    Rank& rank = ranks_[r];
    for (; rank.use < script.uses.size(); FinishUse(r)) {
      const auto [first, last] = MicrobatchesIn(rank, script.uses[rank.use]);
      if (first < last) break;
    }
    FindNext(&rank);
  }

  void FinishUse(int r) {
    Rank& rank = ranks_[r];
    const AfterUse& after = ScriptOfRank(r).after[rank.use];
    for (const int32_t buffer : after.released) rank.writer->AddRelease(buffer);
    for (const auto& [unit, buffer] : after.gathered) rank.writer->AddGather(unit, buffer, rank.stage);
    for (const auto& [unit, buffer] : after.reduced) rank.writer->AddReduce(unit, buffer, rank.stage);
    const bool was_slowest = rank.use++ == slowest_[rank.stage];
    rank.microbatch = 0;
    if (was_slowest) slowest_[rank.stage] = SlowestOf(rank.stage);
  }

  // The use that the last of the stage's ranks is at.
  size_t SlowestOf(int s) const {
    const StageView& stage = view_.stages[s];
    size_t slowest = std::numeric_limits<size_t>::max();
    for (int i = 0; i < stage.num_ranks; ++i) slowest = std::min(slowest, ranks_[stage.first_rank + i].use);
    return slowest;
  }

  // The newest instruction that brings what a microbatch waits for at a border; -1 where there is none. Everything that was sent
  // to the rank before is received before.
  int32_t Receive(Rank* rank, bool backward, int32_t unit, int64_t k) {
    if (!rank->missing.contains({backward, unit, k})) return -1;
    const auto is_it = [&](const ComingPiece& c) { return c.backward == backward && c.unit == unit && c.microbatch == k; };
    const auto newest = std::find_if(rank->coming.rbegin(), rank->coming.rend(), is_it);
    for (auto left = rank->coming.rend() - newest; left > 0; --left) {
      const ComingPiece& coming = rank->coming.front();
      const int32_t instruction = rank->writer->Add(coming.receive, {});
      rank->received[{coming.backward, coming.unit, coming.microbatch}] = instruction;
      rank->coming.pop_front();
    }
    return rank->received.at({backward, unit, k});
  }

  int32_t TiedBuffer(const Rank& rank, int32_t unit) const { return unit == head_ ? scripts_[rank.stage].head_parameters : -1; }

  void Forward(Rank* rank, const UnitUse& use, int64_t k) {
    RankWriter& writer = *rank->writer;
    const int32_t tied = TiedBuffer(*rank, use.unit);
    const bool recompute = rank->recompute && use.unit > 0 && use.unit < head_;
    const Keep keep = !training_ ? Keep::kNothing : recompute ? Keep::kBoundary : Keep::kAll;
    const int32_t input = Receive(rank, false, use.unit, k);
    rank->last_compute = writer.Add(
        motley::Forward{
            .unit = use.unit, .microbatch = static_cast<int32_t>(k), .buffer = use.parameters, .tied_buffer = tied, .keep = keep},
        {writer.Gathered(use.parameters), writer.Gathered(tied), input});
  }

  void Backward(Rank* rank, const UnitUse& use, int64_t k) {
    RankWriter& writer = *rank->writer;
    const auto microbatch = static_cast<int32_t>(k);
    const int32_t tied = TiedBuffer(*rank, use.unit), tied_grad = tied >= 0 ? scripts_[rank->stage].head_gradients : -1;
    const int32_t gathered = writer.Gathered(use.parameters), gathered_tied = writer.Gathered(tied);
    if (rank->recompute && use.unit > 0 && use.unit < head_) {
      writer.Add(Recompute{.unit = use.unit, .microbatch = microbatch, .buffer = use.parameters, .tied_buffer = tied},
                 {gathered, gathered_tied});
    }
    const int32_t gradient = Receive(rank, true, use.unit + 1, k);
    rank->last_compute =
        writer.Add(motley::Backward{.unit = use.unit,
                                    .microbatch = microbatch,
                                    .buffer = use.parameters,
                                    .tied_buffer = tied,
                                    .grad = use.gradients,
                                    .tied_grad = tied_grad},
                   {gathered, gathered_tied, gradient, writer.Reduced(use.gradients), writer.Reduced(tied_grad)});
    writer.Wrote(use.gradients, rank->last_compute);
    writer.Wrote(tied_grad, rank->last_compute);
  }

  // To those of the neighbouring ministage who have the same samples.
  void Deliver(int r, const UnitUse& use, int64_t k) {
    const PipelineBorder& border = (use.backward ? places_.backward_borders : places_.forward_borders)[use.unit];
    if (border.element < 0) return;
    const Rank& rank = ranks_[r];
    const Slot& slot = routes_.SlotsOf(rank.stage)[routes_.SlotOf(rank.actor, k)];
    const int stage = pipeline_.elements[border.element].stage;
    const Routes::Range range = routes_.Overlap(slot, stage);
    Come(hand_overs_.WithSender(r));
    for (int i = range.first; i < range.last; ++i) HandOver(r, use.backward, border.unit, slot, routes_.SlotsOf(stage)[i]);
  }

  void HandOver(int r, bool backward, int32_t unit, const Slot& from, const Slot& to) {
    const int64_t first = std::max(from.begin, to.begin), samples = std::min(from.end, to.end) - first;
    const int peer = RankOf(to.actor);
    const auto fill = [&](auto op, int64_t k, int other) {
      op.unit = unit;
      op.microbatch = static_cast<int32_t>(k);
      op.first = static_cast<int32_t>(first);
      op.samples = static_cast<int32_t>(samples);
      op.peer = other;
      return op;
    };
    const Operation send = backward ? Operation(fill(SendGradient{}, from.k, peer)) : fill(SendActivation{}, from.k, peer);
    const Operation receive = backward ? Operation(fill(ReceiveGradient{}, to.k, r)) : fill(ReceiveActivation{}, to.k, r);
    ranks_[r].sends.push_back(ranks_[r].writer->Add(send, {ranks_[r].last_compute}));
    const int64_t round = round_of_microbatch_[r][from.k];
    Come(hand_overs_.Add({send, receive, backward, unit, to.k, r, peer, first, samples}, round,
                         samples_of_round_[ranks_[r].stage][round]));
  }

  // The order in which these are sent, and the receivers may take them. Whether there are any.
  bool Come(std::vector<ComingPiece> pieces) {
    for (ComingPiece& piece : pieces) {
      Rank& sender = ranks_[piece.sender];
      sender.writer->Put(sender.sends.front(), piece.send);
      sender.sends.pop_front();
      Rank& receiver = ranks_[piece.receiver];
      receiver.missing.at({piece.backward, piece.unit, piece.microbatch}) -= piece.samples;
      receiver.coming.push_back(std::move(piece));
    }
    return !pieces.empty();
  }

  // ---- after the walk ----

  void End(Rank* rank) {
    const StageScript& script = scripts_[rank->stage];
    RankWriter& writer = *rank->writer;
    if (training_ && script.tied_gradients >= 0) writer.AddReduce(0, script.tied_gradients, places_.tied_group);
    const int32_t scalars = writer.Add(ReduceScalars{}, {rank->last_compute});
    if (training_) writer.Add(OptimizerStep{}, {scalars});
  }

  absl::Status Stuck() const {
    std::string text = "the plan's ranks would wait for each other:";
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      const StageScript& script = scripts_[rank.stage];
      if (rank.use >= script.uses.size()) continue;
      const UnitUse& use = script.uses[rank.use];
      absl::StrAppend(&text, " rank ", r, " before the ", use.backward ? "backward" : "forward", " of unit ", use.unit,
                      ", microbatch ", MicrobatchOf(rank, use), ";");
    }
    text.pop_back();
    return absl::InternalError(text);
  }

  const PlanView& view_;
  const PipelineView& pipeline_;
  const PipelineWalk& walk_;
  const bool training_;
  const int32_t head_;
  const PipelinePlaces places_;
  const Routes routes_;
  std::vector<StageScript> scripts_;  // by stage
  std::vector<Rank> ranks_;
  std::vector<size_t> slowest_;                            // by stage
  std::vector<std::vector<int64_t>> microbatch_of_round_;  // by rank; -1 = none
  std::vector<std::vector<int64_t>> round_of_microbatch_;  // by rank
  std::vector<std::vector<int64_t>> samples_of_round_;     // by stage
  HandOverOrder hand_overs_;
};

absl::StatusOr<std::vector<Program>> Write(const Setting& setting, const Plan& plan, const Schedule& schedule, bool training) {
  MOTLEY_ASSIGN_OR_RETURN(PlanView view, ViewOf(setting, plan, {.merge = false, .assign_samples = false}));
  const PipelineSchedule& pipeline = schedule.pipelines.front();
  size_t actor = 0;
  for (const StageSchedule& stage : pipeline.stages) {
    for (const MemberMicrobatches& member : stage.members) {
      std::vector<int64_t>& begin = view.actors[actor++].begin;
      for (const ScheduledMicrobatch& microbatch : member) begin.push_back(microbatch.first);
    }
  }
  const PipelineWalk walk = WalkSchedule(plan.pipelines.front(), pipeline, training);
  return Writer(setting, view, pipeline, walk, training).Write();
}

}  // namespace

absl::StatusOr<std::vector<Program>> LowerTraining(const Setting& setting, const Plan& plan) {
  MOTLEY_RETURN_IF_ERROR(ValidateForEngine(plan, setting.workload.model));
  if (!plan.training) return absl::FailedPreconditionError("the plan has no schedule yet");
  return Write(setting, plan, *plan.training, true);
}

absl::StatusOr<std::vector<Program>> LowerEvaluation(const Setting& setting, const Plan& plan) {
  if (!plan.validation) return absl::FailedPreconditionError("the plan has no schedule of a validation pass");
  return Write(setting, ValidationPass(plan, MicrobatchesOf(*plan.validation)), *plan.validation, false);
}

}  // namespace motley::planner
