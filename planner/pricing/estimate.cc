// EstimatePlan (evaluate.h): seconds of a plan without a graph. Layered and GPipe follow the stages' chunks forward, then
// backward (estimate_passes.h); 1F1B and zero bubble follow passes round by round (estimate_turns.h); others are a formula of the
// longest stage. docs/inside/simulator.md, "Estimator", has all and their distance from the simulator.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/base/status_macros.h"
#include "planner/costs/memory_model.h"
#include "planner/graph/group_flows.h"
#include "planner/lowering/model_blocks.h"
#include "planner/pricing/estimate_borders.h"
#include "planner/pricing/estimate_passes.h"
#include "planner/pricing/estimate_stage.h"
#include "planner/pricing/estimate_turns.h"
#include "planner/pricing/evaluate.h"

namespace motley::planner {
namespace {

class Estimator {
 public:
  Estimator(const Setting& setting, const PlanView& view) : setting_(setting), view_(view), links_(setting.links) {}

  QuickPrice Price() {
    for (size_t s = 0; s < view_.stages.size(); ++s) stages_.push_back(EstimateStage(setting_, view_, static_cast<int>(s)));
    AddTied();
    borders_ = BordersOf(setting_, view_);
    QuickPrice price;
    const bool passes = TraitsOf(view_.schedule).keeps_all;
    for (const PipelineView& pipeline : view_.pipelines) {
      price.step_seconds =
          std::max(price.step_seconds,
                   passes ? EndOfPasses(setting_, view_, pipeline, stages_, borders_) + tied_sum_seconds_ : InTurn(pipeline));
    }
    // No step is shorter than its fullest link, which idles until the first microbatch has come through.
    if (borders_.fullest_seconds > 0) price.step_seconds = std::max(price.step_seconds, borders_.fullest_seconds + FillSeconds());
    price.step_seconds += AcrossSeconds() + AfterSeconds();
    for (const ActorView& actor : view_.actors) price.worst_memory = std::max(price.worst_memory, Memory(actor));
    return price;
  }

 private:
  const StageEstimate& At(int stage) const { return stages_[stage]; }

  double Memory(const ActorView& actor) const {
    double worst = 0;
    for (int r = 0; r < actor.ranks_per_unit; ++r) {
      const RankView& rank = view_.ranks[actor.first_rank + r];
      const auto bytes = static_cast<double>(MemoryOf(setting_.costs, DutyOf(view_, rank), *actor.microbatches).total());
      worst = std::max(worst, bytes / static_cast<double>(setting_.UsableBytes(rank.device)));
    }
    return worst;
  }

  // One microbatch from stage to stage.
  double SendSeconds(int from, int to) const {
    if (from == to) return 0;
    const auto device = [this](int stage) { return view_.ranks[view_.stages[stage].first_rank].device; };
    const double samples = std::min(At(from).first_samples, At(to).first_samples);
    return links_.SecondsAlone(
        links_.PointToPoint(device(from), device(to), static_cast<double>(setting_.costs.BoundaryBytes(samples))));
  }

  void AddTied();
  double FillSeconds() const;
  double InTurn(const PipelineView& pipeline);
  TurnStage TurnOf(size_t index) const;
  double LongestStage(const PipelineView& pipeline) const;
  double FilledStage(const PipelineView& pipeline) const;
  double AcrossSeconds(int s, Collective collective, int zero_stage) const;
  double AcrossSeconds() const;
  double AfterSeconds() const;

  const Setting& setting_;
  const PlanView& view_;
  const Links& links_;
  std::vector<StageEstimate> stages_;
  double tied_sum_seconds_ = 0;  // behind both ends of a pipeline that is alone: the table's gradients
  Borders borders_;
  std::vector<TurnStage> turns_;  // of the last pipeline, and their ends: pipelines that are alike follow each other
  std::vector<double> ends_;
};

// The two ends of a pipeline exchange a table that both compute with: before the first forward of either and behind the last
// backward of both. What pipelines have in common they sum together (AcrossSeconds).
void Estimator::AddTied() {
  const PipelineView& pipeline = view_.pipelines[0];
  const int first = pipeline.embedding_stage(), last = pipeline.head_stage();
  if (!setting_.workload.model.tie_embeddings || first == last || view_.pipelines.size() > 1) return;
  const Costs& costs = setting_.costs;
  const auto elements = static_cast<double>(costs.UnitElements(UnitKind::kEmbedding));
  const auto seconds = [&](Collective collective) {
    return links_.SecondsAlone(TiedFlow(links_, view_, first, last, collective, elements * costs.RingBytes(collective)));
  };
  tied_sum_seconds_ = seconds(Collective::kReduceScatter);
  for (const int s : {first, last}) {
    double& start = stages_[static_cast<size_t>(s)].start_seconds;
    start = std::max(start, seconds(Collective::kAllGather));
  }
}

// The first microbatch's way forward through the quickest pipeline.
double Estimator::FillSeconds() const {
  double least = INFINITY;
  for (const PipelineView& pipeline : view_.pipelines) {
    double seconds = 0;
    for (int s = 0; s < pipeline.num_stages; ++s) {
      const StageEstimate& stage = At(pipeline.first_stage + s);
      for (const ChunkSeconds& chunk : stage.forward) seconds += chunk.first;
      if (s + 1 < pipeline.num_stages) seconds += SendSeconds(pipeline.first_stage + s, pipeline.first_stage + s + 1);
    }
    least = std::min(least, seconds);
  }
  return least;
}

// The stage that ends last, with what follows its last backward.
double Estimator::InTurn(const PipelineView& pipeline) {
  if (TraitsOf(view_.schedule).fixed_order && pipeline.num_stages > 1) return FilledStage(pipeline) + tied_sum_seconds_;
  if (pipeline.elements.size() > static_cast<size_t>(pipeline.num_stages)) return LongestStage(pipeline) + tied_sum_seconds_;
  std::vector<TurnStage> turns;
  for (int s = 0; s < pipeline.num_stages; ++s) turns.push_back(TurnOf(static_cast<size_t>(pipeline.first_stage + s)));
  if (turns != turns_) ends_ = EndsOfTurns(turns);
  turns_ = std::move(turns);
  double longest = 0;
  for (size_t s = 0; s < ends_.size(); ++s) {
    const StageEstimate& stage = stages_[static_cast<size_t>(pipeline.first_stage) + s];
    longest = std::max(longest, ends_[s] + Unhidden(stage.reduce_all, stage.backward.back().last));
    if (s == 0 || s + 1 == ends_.size()) longest = std::max(longest, ends_[s] + tied_sum_seconds_);
  }
  return longest;
}

TurnStage Estimator::TurnOf(size_t index) const {
  const StageEstimate& stage = stages_[index];
  TurnStage turn;
  turn.rounds = std::max<int64_t>(1, stage.rounds);
  turn.in_flight = MostInFlight(view_, view_.stages[index], turn.rounds);
  double forward = 0, backward = 0, recompute = 0;
  for (const ChunkSeconds& chunk : stage.forward) forward += chunk.all / static_cast<double>(turn.rounds);
  for (const ChunkSeconds& chunk : stage.backward) backward += chunk.all / static_cast<double>(turn.rounds);
  for (const ActorSeconds& actor : stage.actors) recompute = std::max(recompute, actor.passes.front().recompute);
  turn.forward_seconds = forward;
  turn.backward_seconds = recompute + stage.input_part * (backward - recompute);
  turn.ahead_seconds = recompute * stage.PartAhead(0, false);
  turn.weight_seconds = (1 - stage.input_part) * (backward - recompute);
  turn.weight_delay = WeightsPutOff(view_.schedule, view_.stages[index].index);
  turn.start_seconds = stage.start_seconds;
  turn.border_seconds = borders_.seconds[index];
  turn.border_latency_seconds = borders_.latency_seconds[index];
  return turn;
}

// Interleaved: the stage whose work, with what it waits for before, at the turn and after, takes longest.
double Estimator::LongestStage(const PipelineView& pipeline) const {
  struct Sums {
    double forward = 0, backward = 0, all = 0, last = 0, rounds = 0, chunks = 1;
  };
  const size_t n = static_cast<size_t>(pipeline.num_stages);
  std::vector<Sums> sums(n);
  std::vector<double> hop(n, 0);  // to the next stage
  for (size_t i = 0; i < n; ++i) {
    const int stage = pipeline.first_stage + static_cast<int>(i);
    for (size_t c = 0; c < At(stage).forward.size(); ++c) {
      sums[i].forward += At(stage).forward[c].first;
      sums[i].backward += At(stage).backward[c].first;
      sums[i].last += At(stage).backward[c].last;
      sums[i].all += At(stage).forward[c].all + At(stage).backward[c].all;
    }
    sums[i].rounds = static_cast<double>(At(stage).rounds);
    sums[i].chunks = static_cast<double>(At(stage).forward.size());
    if (i + 1 < n) hop[i] = SendSeconds(stage, stage + 1);
  }
  double longest = 0;
  for (size_t j = 0; j < n; ++j) {
    const Sums& own = sums[j];
    double before = 0, after = 0;
    for (size_t i = 0; i < n; ++i) {
      if (i == j) continue;
      (i < j ? before : after) += (sums[i].forward + sums[i].backward) / sums[i].chunks + 2 * hop[i < j ? i : i - 1];
    }
    const double depth = static_cast<double>(n - j), warm = std::min(own.rounds, depth) - 1;
    double wait = std::max(0.0, after - warm * own.forward / own.chunks);  // at the turn
    // After the last forward, where there is one after the turn.
    if (own.rounds > depth) wait += std::max(0.0, after - warm * own.backward / own.chunks);
    const StageEstimate& stage = At(pipeline.first_stage + static_cast<int>(j));
    longest = std::max(longest, std::max(before, stage.start_seconds) + own.all + wait + Unhidden(stage.reduce_all, own.last));
  }
  return longest;
}

// ZB-V. Many microbatches: no bubble but the fill, so the stage whose work, from when its first one has come, takes longest. Few:
// each stage goes through them at the pace of forwards and input gradients, behind the first one's way down, up and back.
double Estimator::FilledStage(const PipelineView& pipeline) const {
  double filled = 0, fill = 0, way = 0, rest = 0;
  for (int s = pipeline.first_stage; s < pipeline.first_stage + pipeline.num_stages; ++s) {
    const StageEstimate& stage = At(s);
    const double hop = s > pipeline.first_stage ? SendSeconds(s - 1, s) : 0;
    double forward = 0, backward = 0;
    for (const ChunkSeconds& chunk : stage.forward) forward += chunk.all;
    for (const ChunkSeconds& chunk : stage.backward) backward += chunk.all;
    const double tail = Unhidden(stage.reduce_all, stage.backward.back().last);
    const double rounds = static_cast<double>(std::max<int64_t>(1, stage.rounds));
    const double inputs = stage.input_part * backward, round = (forward + inputs) / rounds;
    fill = std::max(fill + hop, stage.start_seconds);
    filled = std::max(filled, fill + forward + backward + tail);
    fill += stage.forward.front().first;
    way += round + 4 * hop + (s == pipeline.first_stage ? stage.start_seconds : 0);
    rest = std::max(rest, (rounds - 1) * round + (backward - inputs) / rounds + tail);
  }
  return std::max(filled, way + rest);
}

// Of the first pipeline's stage with those of the others that lie at the same depth. `zero_stage`: from which ranks keep shards.
double Estimator::AcrossSeconds(int s, Collective collective, int zero_stage) const {
  const PipelineView& first = view_.pipelines[0];
  const StageView& stage = view_.stages[first.first_stage + s];
  std::vector<int> stages;
  for (const PipelineView& pipeline : view_.pipelines) {
    stages.push_back(pipeline.first_stage + s * pipeline.num_stages / first.num_stages);
  }
  const Costs& costs = setting_.costs;
  const double elements =
      PartBytes(setting_, stage, {stage.embedding, 0, stage.layers, stage.head}) / static_cast<double>(costs.element_bytes());
  const std::vector<std::vector<int>> sets = SetsOf(view_, stages, zero_stage);
  return links_.SecondsAlone(AcrossFlow(links_, sets, collective, elements * costs.RingBytes(collective)));
}

double Estimator::AcrossSeconds() const {
  if (view_.pipelines.size() == 1) return 0;
  double sums = 0, gathers = 0, backward = INFINITY, forward = INFINITY;
  const PipelineView& first = view_.pipelines[0];
  for (int s = 0; s < first.num_stages; ++s) {
    sums = std::max(sums, AcrossSeconds(s, Collective::kReduceScatter, 2));
    gathers = std::max(gathers, AcrossSeconds(s, Collective::kAllGather, 3));
    backward = std::min(backward, At(first.first_stage + s).backward.front().last);
    forward = std::min(forward, At(first.first_stage + s).forward.front().first);
  }
  // What a stage gathers and sums in turn is on the same lane: behind the gathers of all, before their sums.
  for (const StageView& stage : view_.stages) {
    const int in_turn = stage.shared() ? ZeroAsRun(view_, stage) : 0;
    if (in_turn >= 2) backward = 0;
    if (in_turn >= 3) forward = 0;
  }
  const bool whole = view_.pipelines_zero_stage == 0 && std::all_of(view_.stages.begin(), view_.stages.end(),
                                                                    [](const StageView& s) { return s.plan->zero_stage == 0; });
  // Where anybody shards, the second half of the sum is a gather beside the first forward.
  return whole ? Unhidden(sums + gathers, backward) : Unhidden(sums, backward) + Unhidden(gathers, forward);
}

// Norm and optimizer.
double Estimator::AfterSeconds() const {
  double after = 0;
  for (const StageEstimate& stage : stages_) after = std::max(after, stage.optimizer);
  std::vector<int> devices;
  for (const RankView& rank : view_.ranks) devices.push_back(rank.device);
  return after + links_.TreeSeconds(devices);
}

}  // namespace

absl::StatusOr<QuickPrice> EstimatePlan(const Setting& setting, const Plan& plan) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view,
                          ViewOf(setting, plan, {.merge = true, .assign_samples = TraitsOf(plan.schedule).keeps_all}));
  return Estimator(setting, view).Price();
}

}  // namespace motley::planner
