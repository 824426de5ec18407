#include "planner/pricing/estimate_stage.h"

#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "planner/cluster/transfer_line.h"
#include "planner/graph/group_flows.h"
#include "planner/graph/pass_seconds.h"
#include "planner/lowering/model_blocks.h"
#include "planner/lowering/rank_passes.h"

namespace motley::planner {
namespace {

constexpr double kProbeBytes = 1 << 20;

// By the actor's passes from `first` on.
void Widen(const ActorSeconds& actor, size_t first, double PassesSeconds::*pass, ChunkSeconds* worst) {
  const PassesSeconds* passes = actor.passes.data() + first;
  double all = 0;
  for (size_t i = 0; i < actor.runs.size(); ++i) all += static_cast<double>(actor.runs[i].count) * (passes[i].*pass);
  worst->all = std::max(worst->all, all);
  worst->first = worst->first == 0 ? passes->*pass : std::min(worst->first, passes->*pass);
  worst->last = std::max(worst->last, actor.passes.back().*pass);
}

// The last so many once more.
void Repeat(size_t count, std::vector<PassesSeconds>* passes) {
  for (size_t i = 0; i < count; ++i) passes->push_back((*passes)[passes->size() - count]);
}

bool SameChunk(const Part& a, const Part& b) { return a.layers == b.layers && a.embedding == b.embedding && a.head == b.head; }

class StageEstimator {
 public:
  StageEstimator(const Setting& setting, const PlanView& view, int index)
      : setting_(setting),
        view_(view),
        index_(index),
        stage_(view.stages[index]),
        splits_backward_(TraitsOf(view.schedule).splits_backward),
        table_(setting.costs, view.ranks, view.actors) {}

  StageEstimate Estimate() {
    estimate_.work = WorkOf(view_, index_, setting_.workload.model.tie_embeddings);
    for (const int a : stage_.actors) AddActor(static_cast<size_t>(a));
    if (splits_backward_) estimate_.input_part = InputPart();
    AddCopies();
    AddTransfers();
    AddBlocks();
    const std::vector<Chunk>& chunks = estimate_.work.chunks;
    for (size_t c = 0; c < chunks.size(); ++c) {
      if (c > 0 && SameChunk(chunks[c].part, chunks[c - 1].part)) {
        estimate_.forward.push_back(estimate_.forward.back());
        estimate_.backward.push_back(estimate_.backward.back());
        for (ActorSeconds& actor : estimate_.actors) Repeat(actor.runs.size(), &actor.passes);
      } else {
        AddChunk(c);
      }
    }
    AddStart();
    return std::move(estimate_);
  }

 private:
  int zero() const { return stage_.state.ZeroAsRun(); }
  size_t IndexOf(const ActorSeconds& actor) const { return static_cast<size_t>(actor.actor - view_.actors.data()); }

  double InputPart() {
    double input = 0, weight = 0;
    for (const ActorSeconds& actor : estimate_.actors) {
      for (const MicrobatchRun& run : actor.runs) {
        const PassSeconds& pass = table_.Of(IndexOf(actor), run.samples);
        input += static_cast<double>(run.count) * pass.BackwardInput(Whole());
        weight += static_cast<double>(run.count) * pass.BackwardWeight(Whole());
      }
    }
    return input + weight > 0 ? input / (input + weight) : 1;
  }

  // All of the stage's ranks copy at the same time.
  void AddCopies() {
    std::vector<Flow> fetches, activations, gradients;
    for (int r = stage_.first_rank; r < stage_.first_rank + stage_.num_ranks; ++r) {
      const RankView& rank = view_.ranks[r];
      const double part = kProbeBytes * OwnedPart(view_, rank);
      if (rank.plan->offload.parameters && part > 0) fetches.push_back(setting_.links.ToHost(rank.device, part));
      if (rank.plan->offload.gradients && part > 0) gradients.push_back(setting_.links.ToHost(rank.device, part));
      if (rank.plan->offload.activations) activations.push_back(setting_.links.ToHost(rank.device, kProbeBytes));
    }
    if (!fetches.empty()) fetch_ = LineOf(setting_.links, Links::Together(fetches), kProbeBytes);
    if (!gradients.empty()) leave_ = LineOf(setting_.links, Links::Together(gradients), kProbeBytes);
    if (!activations.empty()) copy_ = LineOf(setting_.links, Links::Together(activations), kProbeBytes);
  }

  // What the stage's own ranks gather and sum: not a tied table whose ends are two stages, which both ends exchange
  // (estimate.cc).
  double MovedBytes(const Part& part) const {
    const PipelineView& pipeline = view_.pipelines[stage_.pipeline];
    const bool apart = setting_.workload.model.tie_embeddings && view_.pipelines.size() == 1 &&
                       pipeline.embedding_stage() != pipeline.head_stage();
    const bool has_table = part.embedding || (part.head && stage_.tied_copy);
    const int64_t table = setting_.costs.UnitElements(UnitKind::kEmbedding) * setting_.costs.element_bytes();
    return PartBytes(setting_, stage_, part) - (apart && has_table ? static_cast<double>(table) : 0);
  }

  void AddTransfers() {
    TransferLine gather, reduce;
    const Collective sum = zero() == 0 ? Collective::kAllReduce : Collective::kReduceScatter;
    const double to_reduce = OfElements(setting_.costs.RingBytes(sum));
    const double of_gradient = OfElements(static_cast<double>(setting_.costs.gradient_bytes()));
    const bool across = view_.pipelines.size() > 1;  // then all of them together, but for what comes and goes in turn
    const auto line_of = [this](Collective collective) {
      const Flow flow = GroupFlow(setting_.links, view_, stage_, collective, kProbeBytes);
      estimate_.hidden = std::min(estimate_.hidden, flow.hidden);
      return LineOf(setting_.links, flow, kProbeBytes);
    };
    if (stage_.shared() && zero() >= (across ? 3 : 1)) gather = line_of(Collective::kAllGather);
    if (stage_.shared() && zero() >= (across ? 2 : 0)) reduce = line_of(sum);
    for (const Chunk& chunk : estimate_.work.chunks) {
      const double bytes = MovedBytes(chunk.part);
      estimate_.gather_seconds.push_back(gather.At(bytes));
      estimate_.reduce_seconds.push_back(reduce.At(to_reduce * bytes));
      estimate_.fetch_seconds.push_back(stage_.state.offload.parameters ? fetch_.At(PartBytes(setting_, stage_, chunk.part)) : 0);
      estimate_.leave_seconds.push_back(leave_.At(of_gradient * PartBytes(setting_, stage_, chunk.part)));
    }
    estimate_.reduce_all = reduce.At(to_reduce * MovedBytes(Whole()));
    AddStreams();
    // In turn ministages step one by one.
    if (!stage_.state.steps_in_turn) return;
    estimate_.last_step = std::exchange(estimate_.optimizer, 0) / static_cast<double>(estimate_.work.chunks.size());
  }

  // Bytes of an element, in what one that computes has.
  double OfElements(double bytes) const { return bytes / static_cast<double>(setting_.costs.element_bytes()); }

  // Of what the ranks keep in host memory a part, all of them at the same time, each on its copy lane.
  double StateSeconds(int64_t (HostState::*part)() const) const {
    const double elements = OfElements(PartBytes(setting_, stage_, Whole()));
    std::vector<Flow> flows;
    for (int r = stage_.first_rank; r < stage_.first_rank + stage_.num_ranks; ++r) {
      const RankView& rank = view_.ranks[r];
      if (!rank.plan->offload.takes_state()) continue;
      const HostState state = setting_.costs.InHost(rank.plan->offload, OwnedPart(view_, rank) * elements);
      if ((state.*part)() > 0) flows.push_back(setting_.links.ToHost(rank.device, static_cast<double>((state.*part)())));
    }
    return flows.empty() ? 0 : setting_.links.SecondsAlone(Links::Together(flows));
  }

  // What waits in host memory comes and goes beside the steps, block by block on one lane. The first ones are there by then. In
  // turn ministages step one by one, and what they need is there, too.
  void AddStreams() {
    if (!stage_.state.offload.takes_state()) return;
    const double comes = StateSeconds(&HostState::StepNeeds), goes = StateSeconds(&HostState::StepMakes);
    if (stage_.state.steps_in_turn) {
      estimate_.optimizer += goes;
      return;
    }
    const std::vector<double> parts = BlockParts();
    const auto slots = static_cast<size_t>(stage_.plan->prefetch) + 1;
    std::vector<double> there(parts.size() + slots, 0);
    double lane = 0, step = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      step = std::max(step, there[i]) + parts[i] * estimate_.optimizer;
      lane = std::max(lane, step) + parts[i] * goes;
      if (i + slots < parts.size()) there[i + slots] = lane += parts[i + slots] * comes;
    }
    estimate_.optimizer = lane;
  }
  // Of the stage's elements, by its blocks.
  std::vector<double> BlockParts() const {
    const ModelBlocks blocks = CoarseBlocks(setting_, view_);
    std::vector<double> parts;
    for (const Element& element : view_.pipelines[stage_.pipeline].elements) {
      if (&view_.stages[element.stage] != &stage_) continue;
      for (const int32_t block : BlocksOf(blocks, element)) parts.push_back(static_cast<double>(blocks.elements[block]));
    }
    const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
    for (double& part : parts) part /= all;
    return parts;
  }

  // The first unit's parameters where they come for every microbatch; where they stay, the first ministage's, a block after the
  // other beside its first forward.
  void AddStart() {
    const StageWork& work = estimate_.work;
    if (stage_.state.GathersEveryRound()) {
      estimate_.start_seconds =
          (estimate_.gather_seconds[0] + estimate_.fetch_seconds[0]) / static_cast<double>(work.chunks[0].part.units());
    } else if (!stage_.state.Gathers()) {
      estimate_.start_seconds = Unhidden(estimate_.gather_seconds[0], estimate_.forward[0].first);
    }
  }

  void AddBlocks() {
    const bool across = view_.pipelines.size() > 1, by_ministage = TraitsOf(view_.schedule).by_ministage;
    const auto ministages = static_cast<int64_t>(stage_.plan->ministages.size());
    if (stage_.state.GathersEveryRound()) {
      estimate_.blocks = estimate_.last_blocks = stage_.layers;
    } else if (!by_ministage && stage_.shared() && zero() >= 2) {
      estimate_.blocks = estimate_.last_blocks = std::max<int64_t>(1, 4 / ministages);
    } else if (stage_.shared() || across || stage_.state.offload.parameters) {
      estimate_.last_blocks = std::max<int64_t>(1, static_cast<int64_t>(kReductionPieces) / ministages);
    }
  }

  Part Whole() const { return {stage_.embedding, 0, stage_.layers, stage_.head}; }

  void AddActor(size_t a) {
    const ActorView& actor = view_.actors[a];
    estimate_.rounds = std::max(estimate_.rounds, actor.count());
    if (actor.count() > 0) AddSizes(actor);
    if (actor.ranks_per_unit > 1) {
      std::vector<int> devices;
      for (int r = 0; r < actor.ranks_per_unit; ++r) devices.push_back(view_.ranks[actor.first_rank + r].device);
      meets_[a] = LineOf(setting_.links, setting_.links.Ring(Collective::kAllReduce, devices, kProbeBytes), kProbeBytes);
    }
    const double elements = OfElements(PartBytes(setting_, stage_, Whole()));
    double step = 0;
    for (int r = actor.first_rank; r < actor.first_rank + actor.ranks_per_unit; ++r) {
      const RankView& of_unit = view_.ranks[r];
      step = std::max(step, setting_.costs.OptimizerSeconds(of_unit.kind, OwnedPart(view_, of_unit) * elements));
    }
    estimate_.optimizer = std::max(estimate_.optimizer, step);
  }

  void AddSizes(const ActorView& actor) {
    ActorSeconds& seconds = estimate_.actors.emplace_back();
    seconds.actor = &actor;
    for (const int64_t m : *actor.microbatches) {
      if (seconds.runs.empty() || seconds.runs.back().samples != m) seconds.runs.push_back({m, 0});
      ++seconds.runs.back().count;
    }
  }

  // Where parameters come for every microbatch, its compute can be no shorter than its transfers.
  void AddChunk(size_t c) {
    const bool gathers = stage_.state.GathersEveryRound();
    const bool reduces = !TraitsOf(view_.schedule).by_ministage && zero() >= 2;
    const double forward_transfers = gathers ? std::max(estimate_.gather_seconds[c], estimate_.fetch_seconds[c]) : 0;
    const double backward_transfers =
        gathers ? std::max(estimate_.gather_seconds[c] + (reduces ? estimate_.reduce_seconds[c] : 0), estimate_.fetch_seconds[c])
        : reduces ? estimate_.reduce_seconds[c]
                  : 0;
    ChunkSeconds forward, backward;
    for (ActorSeconds& actor : estimate_.actors) {
      const size_t first = actor.passes.size();
      for (const MicrobatchRun& run : actor.runs) {
        actor.passes.push_back(
            PassesOf(actor, estimate_.work.chunks[c].part, run.samples, forward_transfers, backward_transfers));
      }
      Widen(actor, first, &PassesSeconds::forward, &forward);
      Widen(actor, first, &PassesSeconds::backward, &backward);
    }
    estimate_.in_step[0] = stage_.shared() && gathers;
    estimate_.in_step[1] = stage_.shared() && (gathers || reduces);
    if (estimate_.in_step[1]) HoldInStep(gathers, &forward, &backward);
    estimate_.forward.push_back(forward);
    estimate_.backward.push_back(backward);
  }

  // Ranks that meet in every round (gathers: forward and backward; else in the backward alone) go through the last chunk's rounds
  // together, each as long as its slowest takes. Where a forward and a backward take turns, ranks that meet in one meet in both.
  void HoldInStep(bool gathers, ChunkSeconds* forward, ChunkSeconds* backward) const {
    std::vector<double> slowest[3];  // by round: forward, backward, both
    for (std::vector<double>& rounds : slowest) rounds.assign(static_cast<size_t>(estimate_.rounds), 0);
    for (const ActorSeconds& actor : estimate_.actors) {
      size_t round = 0;
      for (size_t i = 0; i < actor.runs.size(); ++i) {
        const PassesSeconds& pass = actor.passes[actor.passes.size() - actor.runs.size() + i];
        for (int64_t k = 0; k < actor.runs[i].count; ++k, ++round) {
          slowest[0][round] = std::max(slowest[0][round], pass.forward);
          slowest[1][round] = std::max(slowest[1][round], pass.backward);
          slowest[2][round] = std::max(slowest[2][round], pass.forward + pass.backward);
        }
      }
    }
    const auto sum = [](const std::vector<double>& rounds) { return std::accumulate(rounds.begin(), rounds.end(), 0.0); };
    if (gathers) forward->all = sum(slowest[0]);
    const bool both = !gathers && TraitsOf(view_.schedule).alternates;
    backward->all = both ? sum(slowest[2]) - forward->all : sum(slowest[1]);
  }

  PassesSeconds PassesOf(const ActorSeconds& actor, const Part& part, int64_t m, double forward, double backward) {
    const size_t a = IndexOf(actor);
    PassesSeconds passes = {Hidden(Microbatch(a, part, false, m), forward, estimate_.hidden),
                            Hidden(Microbatch(a, part, true, m), backward, estimate_.hidden), table_.Of(a, m).Recompute(part)};
    if (!view_.ranks[actor.actor->first_rank].plan->offload.activations) return passes;
    passes.copy = copy_.At(static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(part.layers * m))));
    if (TraitsOf(view_.schedule).alternates) passes.backward = std::max(passes.backward, 2 * passes.copy - passes.forward);
    return passes;
  }

  double Microbatch(size_t a, const Part& part, bool backward, int64_t m) {
    const ActorView& actor = view_.actors[a];
    const PassSeconds& pass = table_.Of(a, m);
    const double compute = backward ? pass.Recompute(part) + pass.Backward(part, splits_backward_) : pass.Forward(part);
    if (actor.ranks_per_unit == 1) return compute;
    const double times = SumsInside(backward ? TaskKind::kBackward : TaskKind::kForward, part);
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(m)));
    return compute + times * meets_[a].At(bytes);
  }

  const Setting& setting_;
  const PlanView& view_;
  const int index_;
  const StageView& stage_;
  const bool splits_backward_;
  SecondsTable table_;
  std::map<size_t, TransferLine> meets_;  // by actor: an all-reduce inside its tensor-parallel unit
  TransferLine copy_;                     // of an actor's activations to host memory
  TransferLine fetch_, leave_;            // of ranks' own parts from host memory and to it, over the bytes of the whole
  StageEstimate estimate_;
};

}  // namespace

double Hidden(double compute, double transfer, double hidden) { return std::max(compute + (1 - hidden) * transfer, transfer); }

double PartBytes(const Setting& setting, const StageView& stage, const Part& part) {
  const Costs& costs = setting.costs;
  int64_t elements = part.layers * costs.UnitElements(UnitKind::kLayer);
  if (part.embedding || (part.head && stage.tied_copy)) elements += costs.UnitElements(UnitKind::kEmbedding);
  if (part.head) elements += costs.UnitElements(UnitKind::kHead);
  return static_cast<double>(elements * costs.element_bytes());
}

StageEstimate EstimateStage(const Setting& setting, const PlanView& view, int stage) {
  return StageEstimator(setting, view, stage).Estimate();
}

}  // namespace motley::planner
