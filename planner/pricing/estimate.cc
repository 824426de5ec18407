// EstimatePlan (evaluate.h): seconds of a plan without a graph. Layered and GPipe follow the stages' chunks forward, then
// backward (estimate_passes.h); other schedules are walked through in their own order (estimate_walk.h).
// docs/inside/simulator.md, "Estimator", has all and their distance from the simulator.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/status_macros.h"
#include "planner/costs/memory_model.h"
#include "planner/graph/group_flows.h"
#include "planner/lowering/model_blocks.h"
#include "planner/pricing/estimate_borders.h"
#include "planner/pricing/estimate_passes.h"
#include "planner/pricing/estimate_stage.h"
#include "planner/pricing/estimate_walk.h"
#include "planner/pricing/evaluate.h"
#include "planner/scheduling/stage_orders.h"

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
    for (size_t p = 0; p < view_.pipelines.size(); ++p) price.step_seconds = std::max(price.step_seconds, EndOf(p));
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

  void AddTied();
  double FillSeconds() const;
  double EndOf(size_t index);
  TimedPipeline Timed(size_t index) const;
  static TimedPass PassOf(const StageEstimate& stage, size_t chunk);
  double AcrossSeconds(int s, Collective collective, int zero_stage) const;
  double AcrossSeconds() const;
  double AfterSeconds() const;

  const Setting& setting_;
  const PlanView& view_;
  const Links& links_;
  std::vector<StageEstimate> stages_;
  double tied_sum_seconds_ = 0;  // behind both ends of a pipeline that is alone: the table's gradients
  Borders borders_;
  TimedPipeline timed_;  // the last one, and its ends: pipelines that are alike follow each other
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
  for (size_t p = 0; p < view_.pipelines.size(); ++p) {
    const PipelineView& pipeline = view_.pipelines[p];
    double seconds = 0;
    for (int s = pipeline.first_stage; s < pipeline.first_stage + pipeline.num_stages; ++s) {
      for (const ChunkSeconds& chunk : At(s).forward) seconds += chunk.first;
    }
    for (size_t e = 0; e + 1 < pipeline.elements.size(); ++e) {
      seconds += borders_.behind[p][e].Of(At(pipeline.elements[e].stage).rounds);
    }
    least = std::min(least, seconds);
  }
  return least;
}

// The stage that ends last, with what follows its last backward.
double Estimator::EndOf(size_t index) {
  const PipelineView& pipeline = view_.pipelines[index];
  if (TraitsOf(view_.schedule).keeps_all) return EndOfPasses(pipeline, stages_, borders_.behind[index]) + tied_sum_seconds_;
  TimedPipeline timed = Timed(index);
  if (timed != timed_) ends_ = EndsOfWalk(view_.schedule, timed);
  timed_ = std::move(timed);
  double longest = 0;
  for (int s = 0; s < pipeline.num_stages; ++s) {
    const StageEstimate& stage = At(pipeline.first_stage + s);
    longest = std::max(longest, ends_[s] + Unhidden(stage.reduce_all, stage.backward.back().last));
  }
  for (const int end : {pipeline.embedding_stage(), pipeline.head_stage()}) {
    longest = std::max(longest, ends_[end - pipeline.first_stage] + tied_sum_seconds_);
  }
  return longest;
}

TimedPipeline Estimator::Timed(size_t index) const {
  const PipelineView& pipeline = view_.pipelines[index];
  TimedPipeline timed = {StagePlaces(view_, pipeline), {}, {}};
  for (int s = 0; s < pipeline.num_stages; ++s) timed.start_seconds.push_back(At(pipeline.first_stage + s).start_seconds);
  std::vector<size_t> next(timed.places.size(), 0);  // chunk
  for (size_t e = 0; e < pipeline.elements.size(); ++e) {
    const int s = pipeline.elements[e].stage;
    TimedPass& pass = timed.passes.emplace_back(PassOf(At(s), next[s - pipeline.first_stage]++));
    pass.part = static_cast<double>(pipeline.elements[e].layers) / static_cast<double>(view_.stages[s].layers);
    pass.border = borders_.behind[index][e];
  }
  return timed;
}

TimedPass Estimator::PassOf(const StageEstimate& stage, size_t chunk) {
  const auto rounds = static_cast<double>(std::max<int64_t>(1, stage.rounds));
  const double backward = stage.backward[chunk].all / rounds;
  double recompute = 0;
  for (const ActorSeconds& actor : stage.actors) {
    recompute = std::max(recompute, actor.passes[chunk * actor.runs.size()].recompute);
  }
  TimedPass pass;
  pass.forward_seconds = stage.forward[chunk].all / rounds;
  pass.backward_seconds = recompute + stage.input_part * (backward - recompute);
  pass.ahead_seconds = recompute * stage.PartAhead(chunk, false);
  pass.weight_seconds = (1 - stage.input_part) * (backward - recompute);
  return pass;
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
    const int in_turn = stage.state.ZeroAsRun();
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
