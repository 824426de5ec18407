#include "planner/pricing/estimate_stage.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/cluster/transfer_line.h"
#include "planner/lowering/class_flows.h"

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
      : setting_(setting), view_(view), index_(index), stage_(view.stages[index]), table_(setting, view) {}

  StageEstimate Estimate() {
    estimate_.work = WorkOf(view_, index_, setting_.workload.model.tie_embeddings);
    estimate_.first_samples = INFINITY;
    for (const int a : stage_.actors) AddActor(a);
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
    return std::move(estimate_);
  }

 private:
  int zero() const { return stage_.plan->zero_stage; }

  void AddTransfers() {
    TransferLine gather, reduce;
    const Collective sum = zero() == 0 ? Collective::kAllReduce : Collective::kReduceScatter;
    const double to_reduce = setting_.costs.RingBytes(sum) / static_cast<double>(setting_.costs.element_bytes());
    if (stage_.shared() && view_.pipelines.size() == 1) {
      if (zero() > 0)
        gather =
            LineOf(setting_.links, GroupFlow(setting_.links, view_, stage_, Collective::kAllGather, kProbeBytes), kProbeBytes);
      reduce = LineOf(setting_.links, GroupFlow(setting_.links, view_, stage_, sum, kProbeBytes), kProbeBytes);
    }
    for (const Chunk& chunk : estimate_.work.chunks) {
      const double bytes = PartBytes(setting_, stage_, chunk.part);
      estimate_.gather_seconds.push_back(gather.At(bytes));
      estimate_.reduce_seconds.push_back(reduce.At(to_reduce * bytes));
      estimate_.fetch_seconds.push_back(stage_.offload_parameters ? fetch_.At(bytes) : 0);
    }
    const double bytes = PartBytes(setting_, stage_, Whole());
    estimate_.gather_all = gather.At(bytes);
    estimate_.reduce_all = reduce.At(to_reduce * bytes);
  }

  void AddBlocks() {
    const bool across = view_.pipelines.size() > 1, by_ministage = TraitsOf(view_.schedule).by_ministage;
    const auto ministages = static_cast<int64_t>(stage_.plan->ministages.size());
    const bool streams = estimate_.work.residency == Residency::kPerMicrobatch && !across;
    if (streams) {
      estimate_.blocks = estimate_.last_blocks = stage_.layers;
    } else if (!by_ministage && stage_.shared() && zero() >= 2 && !across) {
      estimate_.blocks = estimate_.last_blocks = std::max<int64_t>(1, 4 / ministages);
    } else if (stage_.shared() || across || stage_.offload_parameters) {
      estimate_.last_blocks = std::max<int64_t>(1, static_cast<int64_t>(kReductionPieces) / ministages);
    }
  }

  Part Whole() const { return {stage_.embedding, 0, stage_.layers, stage_.head}; }

  void AddActor(int a) {
    const ActorView& actor = view_.actors[a];
    estimate_.rounds = std::max(estimate_.rounds, actor.count());
    if (actor.count() > 0) AddSizes(actor);
    if (actor.ranks_per_unit > 1) {
      std::vector<int> devices;
      for (int r = 0; r < actor.ranks_per_unit; ++r) devices.push_back(view_.ranks[actor.first_rank + r].device);
      meets_[a] = LineOf(setting_.links, setting_.links.Ring(Collective::kAllReduce, devices, kProbeBytes), kProbeBytes);
    }
    const RankView& rank = view_.ranks[actor.first_rank];
    const double elements = PartBytes(setting_, stage_, Whole()) / static_cast<double>(setting_.costs.element_bytes());
    double step = table_.OptimizerSeconds(a, elements);
    if (rank.plan->offload_optimizer || stage_.offload_parameters) {
      const TransferLine host = LineOf(setting_.links, setting_.links.ToHost(rank.device, kProbeBytes), kProbeBytes);
      const double moments =
          OwnedPart(view_, rank) * elements * static_cast<double>(setting_.costs.optimizer_bytes_per_element());
      if (rank.plan->offload_optimizer) step = std::max(step, 2 * host.At(moments));
      const double share = zero() == 0 ? rank.plan->tp_share : rank.share;
      fetch_.latency_seconds = std::max(fetch_.latency_seconds, host.latency_seconds);
      fetch_.seconds_per_byte = std::max(fetch_.seconds_per_byte, host.seconds_per_byte * share);
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
    for (const MicrobatchRun& run : seconds.runs)
      estimate_.first_samples = std::min(estimate_.first_samples, static_cast<double>(run.samples * actor.units()));
  }

  // Where parameters come for every microbatch, its compute can be no shorter than its transfers.
  void AddChunk(size_t c) {
    const bool gathers = estimate_.work.residency == Residency::kPerMicrobatch;
    const bool reduces = !TraitsOf(view_.schedule).by_ministage && zero() >= 2 && view_.pipelines.size() == 1;
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
    estimate_.forward.push_back(forward);
    estimate_.backward.push_back(backward);
  }

  PassesSeconds PassesOf(const ActorSeconds& actor, const Part& part, int64_t m, double forward, double backward) {
    const int a = static_cast<int>(actor.actor - view_.actors.data());
    const double overlap = setting_.cluster.overlap_efficiency;
    return {Hidden(Microbatch(a, part, false, m), forward, overlap), Hidden(Microbatch(a, part, true, m), backward, overlap),
            table_.Of(a, m).Recompute(part)};
  }

  double Microbatch(int a, const Part& part, bool backward, int64_t m) {
    const ActorView& actor = view_.actors[a];
    const PassSeconds pass = table_.Of(a, m);
    const double compute = backward ? pass.Recompute(part) + pass.Backward(part) : pass.Forward(part);
    if (actor.ranks_per_unit == 1) return compute;
    const PassReductions sums = table_.ReductionsOf(a);
    const double times = backward ? sums.Recompute(part) + sums.Backward(part) : sums.Forward(part);
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(m)));
    return compute + times * meets_[a].At(bytes);
  }

  const Setting& setting_;
  const PlanView& view_;
  const int index_;
  const StageView& stage_;
  SecondsTable table_;
  std::map<int, TransferLine> meets_;  // by actor: an all-reduce inside its tensor-parallel unit
  TransferLine fetch_;                 // of an actor's own part from host memory, over the bytes of the whole
  StageEstimate estimate_;
};

}  // namespace

double Hidden(double compute, double transfer, double overlap) { return std::max(compute + (1 - overlap) * transfer, transfer); }

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
