// EstimatePlan (evaluate.h): seconds of a plan without a graph. Layered and GPipe follow the stages' chunks once forward and once
// backward, with a clock for each stage's compute and collectives; 1F1B and its kin are a formula of the longest stage.
// docs/simulator.md, "Estimator", has both and their distance from the simulator.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/status_macros.h"
#include "planner/costs/memory_model.h"
#include "planner/lowering/class_flows.h"
#include "planner/pricing/estimate_borders.h"
#include "planner/pricing/estimate_stage.h"
#include "planner/pricing/estimate_turns.h"
#include "planner/pricing/evaluate.h"

namespace motley::planner {
namespace {

// As the lowering overlaps the last backward's reductions.
constexpr double kPieces = 16;

// One stage in the two passes: when its compute and its collective lane are free, and its buffers (docs/planner.md, "Lowering").
class StageClock {
 public:
  StageClock(const StageEstimate& stage, double overlap)
      : stage_(stage), overlap_(overlap), gathered_(stage.work.chunks.size(), 0) {
    if (!in_turn()) return;
    for (size_t c = 0; c < std::min<size_t>(keeps() ? 3 : 2, chunks()); ++c) Gather(c);
  }

  struct Arrival {
    double first = 0, last = 0;  // of the microbatches
  };
  size_t chunks() const { return stage_.work.chunks.size(); }
  double end() const { return std::max(compute_, lane_); }

  Arrival Forward(size_t c, const Arrival& arrival) {
    const double exposed = in_turn() ? (1 - overlap_) * stage_.gather_seconds[c] : 0;
    const Arrival out =
        Pass(stage_.forward[c], std::max({compute_ + exposed, in_turn() ? gathered_[c] : 0, arrival.first}), arrival);
    compute_ = out.last;
    if (in_turn() && !StaysAtTurn(c)) {
      freed_[Buffer(c)] = out.last;
      if (!(keeps() && c == 0)) Gather(c + 2);
    }
    return out;
  }

  Arrival Backward(size_t c, const Arrival& arrival) {
    const double exposed = in_turn() && !StaysAtTurn(c) ? (1 - overlap_) * stage_.gather_seconds[c] : 0;
    const double start = std::max({compute_ + exposed, in_turn() ? gathered_[c] : 0, arrival.first, reduced_[Buffer(c)]});
    const Arrival out = Pass(stage_.backward[c], start, arrival);
    compute_ = out.last + (1 - overlap_) * stage_.reduce_seconds[c];
    if (in_turn()) {
      freed_[Buffer(c)] = out.last;
      if (c >= 2 && !(keeps() && c == 2)) Gather(c - 2);
    }
    if (stage_.reduce_seconds[c] > 0) Reduce(c, out.last);
    return out;
  }

 private:
  bool in_turn() const { return stage_.work.residency == Residency::kInTurn; }
  bool keeps() const { return stage_.work.keeps_embedding; }
  size_t Buffer(size_t c) const { return keeps() && c == 0 ? 2 : c % 2; }
  bool StaysAtTurn(size_t c) const { return c + 2 >= chunks() || (keeps() && c == 0); }

  static Arrival Pass(const ChunkSeconds& chunk, double start, const Arrival& arrival) {
    return {start + std::min(chunk.first, chunk.all), std::max(start + chunk.all, arrival.last + chunk.last)};
  }

  void Gather(size_t c) {
    copy_ = std::max(copy_, freed_[Buffer(c)]) + stage_.fetch_seconds[c];
    lane_ = std::max({lane_, copy_, freed_[Buffer(c)]}) + stage_.gather_seconds[c];
    gathered_[c] = lane_;
  }

  // The reductions of a chunk of several units begin with the last microbatch's backward.
  void Reduce(size_t c, double finish) {
    const double seconds = stage_.reduce_seconds[c];
    const bool pieces = stage_.work.chunks[c].part.units() > 1;
    const double begin = pieces ? finish - (1 - 1 / kPieces) * stage_.backward[c].last : finish;
    lane_ = std::max(std::max(lane_, begin) + seconds, finish + (pieces ? seconds / kPieces : seconds));
    reduced_[Buffer(c)] = lane_;
    if (!keeps() || c + 1 < chunks()) return;
    lane_ += stage_.reduce_seconds[0];  // the head's part of a tied embedding's gradient
    reduced_[2] = lane_;
  }

  const StageEstimate& stage_;
  const double overlap_;
  double compute_ = 0, lane_ = 0, copy_ = 0;
  double freed_[3] = {0, 0, 0}, reduced_[3] = {0, 0, 0};
  std::vector<double> gathered_;  // by chunk
};

class Estimator {
 public:
  Estimator(const Setting& setting, const PlanView& view) : setting_(setting), view_(view), links_(setting.links) {}

  QuickPrice Price() {
    for (size_t s = 0; s < view_.stages.size(); ++s) stages_.push_back(EstimateStage(setting_, view_, static_cast<int>(s)));
    borders_ = BordersOf(setting_, view_);
    QuickPrice price;
    const bool passes = TraitsOf(view_.schedule).keeps_all;
    for (const PipelineView& pipeline : view_.pipelines) {
      price.step_seconds = std::max(price.step_seconds, passes ? TwoPasses(pipeline) : InTurn(pipeline));
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

  // What the reductions of a whole stage add after its last backward.
  static double ReductionTail(double reduction, double last_backward) {
    return std::max(reduction / kPieces, reduction - (1 - 1 / kPieces) * last_backward);
  }

  double TwoPasses(const PipelineView& pipeline) const;
  double FillSeconds() const;
  double InTurn(const PipelineView& pipeline) const;
  double LongestStage(const PipelineView& pipeline) const;
  double FilledStage(const PipelineView& pipeline) const;
  double StartSeconds(const StageEstimate& stage) const;
  double AcrossSeconds() const;
  double AfterSeconds() const;

  const Setting& setting_;
  const PlanView& view_;
  const Links& links_;
  std::vector<StageEstimate> stages_;
  Borders borders_;
};

double Estimator::TwoPasses(const PipelineView& pipeline) const {
  std::vector<StageClock> clocks;
  std::vector<size_t> next(static_cast<size_t>(pipeline.num_stages), 0);  // chunk of each stage
  for (int s = 0; s < pipeline.num_stages; ++s)
    clocks.emplace_back(At(pipeline.first_stage + s), setting_.cluster.overlap_efficiency);
  const std::vector<Element>& elements = pipeline.elements;
  StageClock::Arrival arrival;
  for (size_t e = 0; e < elements.size(); ++e) {
    const size_t i = static_cast<size_t>(elements[e].stage - pipeline.first_stage);
    const double send = e > 0 ? SendSeconds(elements[e - 1].stage, elements[e].stage) : 0;
    arrival = {arrival.first + send, arrival.last + send};
    const std::vector<Chunk>& chunks = At(elements[e].stage).work.chunks;
    for (size_t& c = next[i]; c < chunks.size() && chunks[c].element == static_cast<int>(e); ++c)
      arrival = clocks[i].Forward(c, arrival);
  }
  for (size_t e = elements.size(); e-- > 0;) {
    const size_t i = static_cast<size_t>(elements[e].stage - pipeline.first_stage);
    const double send = e + 1 < elements.size() ? SendSeconds(elements[e + 1].stage, elements[e].stage) : 0;
    arrival = {arrival.first + send, arrival.last + send};
    const std::vector<Chunk>& chunks = At(elements[e].stage).work.chunks;
    for (size_t& c = next[i]; c > 0 && chunks[c - 1].element == static_cast<int>(e); --c)
      arrival = clocks[i].Backward(c - 1, arrival);
  }
  double end = 0;
  for (const StageClock& clock : clocks) end = std::max(end, clock.end());
  return end;
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

// Parameters that are gathered for every microbatch: the first unit's.
double Estimator::StartSeconds(const StageEstimate& stage) const {
  if (stage.work.residency != Residency::kPerMicrobatch) return 0;
  return (stage.gather_seconds[0] + stage.fetch_seconds[0]) / static_cast<double>(stage.work.chunks[0].part.units());
}

// The stage that ends last, with what follows its last backward.
double Estimator::InTurn(const PipelineView& pipeline) const {
  if (TraitsOf(view_.schedule).fixed_order && pipeline.num_stages > 1) return FilledStage(pipeline);
  if (pipeline.elements.size() > static_cast<size_t>(pipeline.num_stages)) return LongestStage(pipeline);
  const double input_part = TraitsOf(view_.schedule).splits_backward ? setting_.costs.InputGradientPart() : 1;
  std::vector<TurnStage> turns;
  for (int s = 0; s < pipeline.num_stages; ++s) {
    const size_t index = static_cast<size_t>(pipeline.first_stage + s);
    const StageEstimate& stage = stages_[index];
    TurnStage turn;
    turn.rounds = std::max<int64_t>(1, stage.rounds);
    turn.in_flight = MostInFlight(view_, view_.stages[index], turn.rounds);
    double forward = 0, backward = 0;
    for (const ChunkSeconds& chunk : stage.forward) forward += chunk.all / static_cast<double>(turn.rounds);
    for (const ChunkSeconds& chunk : stage.backward) backward += chunk.all / static_cast<double>(turn.rounds);
    turn.forward_seconds = forward;
    turn.backward_seconds = input_part * backward;
    turn.weight_seconds = (1 - input_part) * backward;
    turn.weight_delay = WeightsPutOff(view_.schedule, s);
    turn.border_seconds = borders_.seconds[index];
    turn.border_latency_seconds = borders_.latency_seconds[index];
    turns.push_back(turn);
  }
  const std::vector<double> ends = EndsOfTurns(turns);
  double longest = 0;
  for (size_t s = 0; s < ends.size(); ++s) {
    const StageEstimate& stage = stages_[static_cast<size_t>(pipeline.first_stage) + s];
    longest = std::max(longest, ends[s] + StartSeconds(stage) + ReductionTail(stage.reduce_all, stage.backward.back().last));
  }
  return longest;
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
    longest = std::max(longest, before + own.all + wait + StartSeconds(stage) + ReductionTail(stage.reduce_all, own.last));
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
    const double tail = StartSeconds(stage) + ReductionTail(stage.reduce_all, stage.backward.back().last);
    const double rounds = static_cast<double>(std::max<int64_t>(1, stage.rounds));
    const double inputs = setting_.costs.InputGradientPart() * backward, round = (forward + inputs) / rounds;
    fill += hop;
    filled = std::max(filled, fill + forward + backward + tail);
    fill += stage.forward.front().first;
    way += round + 4 * hop;
    rest = std::max(rest, (rounds - 1) * round + (backward - inputs) / rounds + tail);
  }
  return std::max(filled, way + rest);
}

// Sums between pipelines: by the first one's stages, with those of the others that lie at the same depth.
double Estimator::AcrossSeconds() const {
  if (view_.pipelines.size() == 1) return 0;
  double across = 0, hidden = INFINITY;
  const PipelineView& first = view_.pipelines[0];
  for (int s = 0; s < first.num_stages; ++s) {
    const StageView& stage = view_.stages[first.first_stage + s];
    std::vector<std::vector<int>> sets;
    for (const PipelineView& pipeline : view_.pipelines) {
      sets.push_back(DevicesOf(view_, view_.stages[pipeline.first_stage + s * pipeline.num_stages / first.num_stages]));
    }
    const double bytes = PartBytes(setting_, stage, {stage.embedding, 0, stage.layers, stage.head}) *
                         setting_.costs.RingBytes(Collective::kAllReduce) / static_cast<double>(setting_.costs.element_bytes());
    across = std::max(across, links_.SecondsAlone(AcrossFlow(links_, sets, Collective::kAllReduce, bytes)));
    hidden = std::min(hidden, At(first.first_stage + s).backward.front().last);
  }
  return ReductionTail(across, hidden);
}

// Norm, optimizer, gathers of stepped parameters.
double Estimator::AfterSeconds() const {
  double after = 0;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const StageView& stage = view_.stages[i];
    const int zero = stage.plan->zero_stage;
    const bool interleaved = TraitsOf(view_.schedule).by_ministage && stage.offload_parameters && view_.pipelines.size() == 1;
    const double pieces = interleaved ? static_cast<double>(stages_[i].work.chunks.size()) : 1;
    const bool gathers = (zero == 1 || zero == 2) && !stage.offload_parameters;
    after = std::max(after, stages_[i].optimizer / pieces + (gathers ? stages_[i].gather_all : 0));
  }
  std::vector<int> devices;
  for (const RankView& rank : view_.ranks) devices.push_back(rank.device);
  return after + links_.TreeSeconds(devices);
}

}  // namespace

absl::StatusOr<QuickPrice> EstimatePlan(const Setting& setting, const Plan& plan) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, plan, {.merge = true, .assign_samples = false}));
  return Estimator(setting, view).Price();
}

}  // namespace motley::planner
