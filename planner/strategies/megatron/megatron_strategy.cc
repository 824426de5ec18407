// What people use today, honestly tuned: uniform tensor x pipeline x data parallelism as Megatron-LM does it (Narayanan et al.,
// "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021; the step's length is its
// section 2.2).
//
// Every power-of-two degree of tensor parallelism inside nodes, any number of stages, the most replicas that divide the batch,
// every power-of-two microbatch, 1F1B and interleaved, recomputation of nothing or all (as asked for), the optimizer's state
// sharded over replicas; layers by the stages' speeds and memories, several orders of devices, the slowest kinds left out.
// As published: within megatron_limits.h.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/costs/memory_model.h"
#include "planner/groups/megatron_layout.h"
#include "planner/published/megatron_limits.h"
#include "planner/search/best_plan.h"
#include "planner/search/pipeline_seconds.h"
#include "planner/setting/blank_plan.h"
#include "planner/setting/least_lack.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/megatron/megatron_cut.h"
#include "planner/strategies/megatron/megatron_layers.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr size_t kEstimates = 24;
constexpr int64_t kMostMinistages = 8;

// Seconds of one microbatch on a kind, forward and backward, by what is computed.
struct PassSeconds {
  double layer = 0, embedding = 0, head = 0;
};

// What is tried: everything but the layers of each stage, which follow.
struct Shape {
  int64_t stages = 1, replicas = 1, ministages = 1, microbatch = 1, count = 1;
  bool recompute = false;
};

struct Candidate {
  double seconds = kInfinity;
  size_t groups = 0;  // into the search's list
  Shape shape;
  std::vector<int64_t> layers;  // by stage
};

class MegatronSearch {
 public:
  MegatronSearch(const Setting& setting, MegatronLimits limits) : setting_(setting), costs_(setting.costs), limits_(limits) {}

  absl::StatusOr<Plan> Run();

 private:
  PassSeconds Pass(int kind, const Shape& shape) const;
  void FillPasses();

  void TryGroups(size_t index);
  void TryCut(size_t index, const GroupCut& cut, Shape shape);
  void TryShape(size_t index, const GroupCut& cut, const Shape& shape);
  std::vector<StageSpeed> Speeds(const GroupCut& cut, const Shape& shape) const;
  double StepSeconds(const GroupCut& cut, const Shape& shape, const std::vector<StageSpeed>& speeds,
                     const std::vector<int64_t>& layers) const;
  RankDuty Duty(int kind, const Shape& shape, size_t stage, int64_t layers) const;
  int64_t PeakBytes(int kind, const Shape& shape, size_t stage, int64_t layers) const;
  int64_t MostLayers(const GroupCut& cut, const Shape& shape, size_t stage) const;
  // What the fullest stage lacks; nothing where all fit.
  std::optional<DeviceLack> Lacks(const GroupCut& cut, const Shape& shape, const std::vector<int64_t>& layers) const;

  Plan MakePlan(const Candidate& candidate) const;

  const Setting& setting_;
  const Costs& costs_;
  const MegatronLimits limits_;
  std::vector<MegatronGroups> groups_;
  int tp_ = 1;                                    // of the groups being tried
  std::vector<std::vector<PassSeconds>> passes_;  // [microbatch's exponent x 2 + recompute][kind], for tp_
  std::vector<Candidate> best_;                   // ascending seconds, at most kEstimates
  std::optional<DeviceLack> least_lack_;
  bool pins_held_ = false;
};

int Exponent(int64_t power) {
  int exponent = 0;
  while (power > 1) power /= 2, ++exponent;
  return exponent;
}

PassSeconds MegatronSearch::Pass(int kind, const Shape& shape) const {
  return passes_[2 * Exponent(shape.microbatch) + (shape.recompute ? 1 : 0)][kind];
}

void MegatronSearch::FillPasses() {
  passes_.clear();
  const double share = 1.0 / tp_;
  for (int64_t m = 1; m <= setting_.workload.global_batch; m *= 2) {
    const double samples = static_cast<double>(m);
    std::vector<PassSeconds> keep, again;
    for (int kind = 0; kind < costs_.num_kinds(); ++kind) {
      const auto seconds = [&](UnitKind unit) {
        return costs_.ForwardSeconds(kind, unit, samples, share) + costs_.BackwardSeconds(kind, unit, samples, share);
      };
      keep.push_back({seconds(UnitKind::kLayer), seconds(UnitKind::kEmbedding), seconds(UnitKind::kHead)});
      again.push_back(keep.back());
      again.back().layer += costs_.RecomputeSeconds(kind, UnitKind::kLayer, OpSet::All(), samples, share);
    }
    passes_.push_back(std::move(keep));
    passes_.push_back(std::move(again));
  }
}

void MegatronSearch::TryGroups(size_t index) {
  const MegatronGroups& groups = groups_[index];
  const int64_t layers = setting_.workload.model.num_layers, batch = setting_.workload.global_batch;
  const int64_t available = static_cast<int64_t>(groups.groups.size());
  for (int64_t stages = 1; stages <= std::min(layers, available); ++stages) {
    if (limits_.equal_layers && layers % stages != 0) continue;
    int64_t replicas = available / stages;
    while (batch % replicas != 0) --replicas;
    if (!PinsHold(setting_, groups.groups, stages, replicas)) continue;
    pins_held_ = true;
    const GroupCut cut = CutGroups(setting_, groups.groups, stages, replicas);
    Shape shape;
    shape.stages = stages;
    shape.replicas = replicas;
    for (int64_t ministages = 1; ministages <= std::min(kMostMinistages, layers / stages); ministages *= 2) {
      if (ministages > 1 && (stages == 1 || (limits_.equal_layers && layers % (stages * ministages) != 0))) break;
      shape.ministages = ministages;
      TryCut(index, cut, shape);
    }
  }
}

void MegatronSearch::TryCut(size_t index, const GroupCut& cut, Shape shape) {
  const int64_t own = setting_.workload.global_batch / shape.replicas;
  for (int64_t m = 1; m <= own && own % m == 0; m *= 2) {
    shape.microbatch = m;
    shape.count = own / m;
    if (shape.ministages > 1 && shape.count % shape.stages != 0) continue;  // Megatron's rule for interleaving
    for (const OpSet ops : setting_.RecomputeWays()) {
      shape.recompute = ops.all();
      TryShape(index, cut, shape);
    }
  }
}

// Seconds of one microbatch on each stage; the slowest of its kinds holds the others up.
std::vector<StageSpeed> MegatronSearch::Speeds(const GroupCut& cut, const Shape& shape) const {
  const double boundary = static_cast<double>(costs_.BoundaryBytes(static_cast<double>(shape.microbatch)));
  // Two all-reduces forward, two backward.
  const double reduces = tp_ > 1 ? 4 : 0;
  std::vector<StageSpeed> speeds(cut.kinds.size());
  for (size_t s = 0; s < cut.kinds.size(); ++s) {
    for (const int kind : cut.kinds[s]) {
      const PassSeconds pass = Pass(kind, shape);
      const double extra = (s == 0 ? pass.embedding : 0) + (s + 1 == cut.kinds.size() ? pass.head : 0);
      speeds[s].seconds_per_layer =
          std::max(speeds[s].seconds_per_layer, pass.layer + reduces * cut.tensor_reduce[s].At(boundary));
      speeds[s].extra_seconds = std::max(speeds[s].extra_seconds, extra);
    }
    speeds[s].least_layers = shape.ministages;
    speeds[s].most_layers = setting_.workload.model.num_layers;
  }
  return speeds;
}

double MegatronSearch::StepSeconds(const GroupCut& cut, const Shape& shape, const std::vector<StageSpeed>& speeds,
                                   const std::vector<int64_t>& layers) const {
  const double boundary = static_cast<double>(costs_.BoundaryBytes(static_cast<double>(shape.microbatch)));
  const auto layer_elements = static_cast<double>(costs_.UnitElements(UnitKind::kLayer));
  const double gathered = layer_elements * costs_.RingBytes(Collective::kAllGather) / tp_;
  const double reduced = layer_elements * costs_.RingBytes(Collective::kReduceScatter) / tp_;
  PipelineLoad load;
  load.microbatches = shape.count;
  load.ministages = shape.ministages;
  load.link_seconds = boundary * static_cast<double>(shape.ministages) *
                      (shape.ministages > 1 ? cut.round_links_seconds_per_byte : cut.links_seconds_per_byte);
  for (const TransferLine& send : cut.sends) load.send_seconds.push_back(send.At(boundary));
  double synchronise = 0;
  for (size_t s = 0; s < speeds.size(); ++s) {
    const double n = static_cast<double>(layers[s]);
    load.stage_seconds.push_back(speeds[s].extra_seconds + speeds[s].seconds_per_layer * n);
    synchronise = std::max(synchronise, n * (cut.replica_gather[s].At(gathered) + cut.replica_reduce[s].At(reduced)));
  }
  return PipelineSeconds(load) + synchronise;
}

RankDuty MegatronSearch::Duty(int kind, const Shape& shape, size_t stage, int64_t layers) const {
  RankDuty duty;
  duty.kind = kind;
  duty.layers = layers;
  duty.ministages = shape.ministages;
  duty.largest_ministage = (layers + shape.ministages - 1) / shape.ministages;
  duty.embedding = stage == 0;
  duty.head = static_cast<int64_t>(stage) + 1 == shape.stages;
  duty.schedule = shape.ministages > 1 ? ScheduleFamily::kInterleaved : ScheduleFamily::k1F1B;
  duty.stage = static_cast<int>(stage);
  duty.num_stages = static_cast<int>(shape.stages);
  duty.zero_stage = setting_.request.zero_stage.value_or(1);
  duty.tp_share = 1.0 / tp_;
  duty.share = duty.tp_share / static_cast<double>(shape.replicas);
  duty.recompute = shape.recompute ? OpSet::All() : OpSet::None();
  duty.group_size = shape.replicas;
  return duty;
}

int64_t MegatronSearch::PeakBytes(int kind, const Shape& shape, size_t stage, int64_t layers) const {
  return MemoryOf(costs_, Duty(kind, shape, stage, layers), shape.count, shape.microbatch, 0).total();
}

// The ledger is nearly a line in the layers: two points give the answer, a few more make sure of it.
int64_t MegatronSearch::MostLayers(const GroupCut& cut, const Shape& shape, size_t stage) const {
  int64_t most = setting_.workload.model.num_layers;
  for (const int kind : cut.kinds[stage]) {
    const int64_t usable = setting_.UsableBytes(cut.device_of_kind[kind]);
    const int64_t v = shape.ministages;
    const int64_t one = PeakBytes(kind, shape, stage, v);
    if (one > usable) return 0;
    const int64_t by_ministage = std::max<int64_t>(1, PeakBytes(kind, shape, stage, 2 * v) - one);
    int64_t fits = std::min(most, v + v * ((usable - one) / by_ministage));
    while (fits > v && PeakBytes(kind, shape, stage, fits) > usable) --fits;
    most = fits;
  }
  return most;
}

std::optional<DeviceLack> MegatronSearch::Lacks(const GroupCut& cut, const Shape& shape,
                                                const std::vector<int64_t>& layers) const {
  std::optional<DeviceLack> most;
  for (size_t s = 0; s < cut.kinds.size(); ++s) {
    for (const int kind : cut.kinds[s]) {
      const int device = cut.device_of_kind[kind];
      const int64_t bytes = PeakBytes(kind, shape, s, layers[s]) - setting_.UsableBytes(device);
      if (bytes > 0 && (!most || bytes > most->bytes)) most = DeviceLack{bytes, device};
    }
  }
  return most;
}

void MegatronSearch::TryShape(size_t index, const GroupCut& cut, const Shape& shape) {
  std::vector<StageSpeed> speeds = Speeds(cut, shape);
  const int64_t all = setting_.workload.model.num_layers;
  Candidate candidate;
  candidate.groups = index;
  candidate.shape = shape;
  candidate.layers = limits_.equal_layers ? std::vector<int64_t>(speeds.size(), all / shape.stages) : BalanceLayers(speeds, all);
  candidate.seconds = StepSeconds(cut, shape, speeds, candidate.layers);
  // Memory limits only make it slower: what is too slow already is not looked at.
  if (best_.size() == kEstimates && candidate.seconds >= best_.back().seconds) return;
  std::optional<DeviceLack> lack = Lacks(cut, shape, candidate.layers);
  if (lack && !limits_.equal_layers) {
    for (size_t s = 0; s < speeds.size(); ++s) speeds[s].most_layers = MostLayers(cut, shape, s);
    candidate.layers = BalanceLayers(speeds, all);
    if (!candidate.layers.empty()) {
      candidate.seconds = StepSeconds(cut, shape, speeds, candidate.layers);
      lack.reset();
    }
  }
  if (!lack) return KeepFastest(std::move(candidate), kEstimates, &best_);
  if (!least_lack_ || lack->bytes < least_lack_->bytes) least_lack_ = lack;
}

Plan MegatronSearch::MakePlan(const Candidate& candidate) const {
  const MegatronGroups& groups = groups_[candidate.groups];
  const Shape& shape = candidate.shape;
  Plan plan = BlankPlan(setting_, "megatron", shape.ministages > 1 ? ScheduleFamily::kInterleaved : ScheduleFamily::k1F1B);
  plan.unused.insert(plan.unused.end(), groups.unused.begin(), groups.unused.end());
  PipelinePlan pipeline;
  size_t next = 0;
  for (int64_t s = 0; s < shape.stages; ++s) {
    StagePlan stage;
    stage.zero_stage = setting_.request.zero_stage.value_or(1);
    for (int64_t r = 0; r < shape.replicas; ++r) {
      UnitPlan unit;
      for (const int d : groups.groups[next++]) {
        RankPlan rank = RankOn(setting_, d);
        rank.recompute = shape.recompute ? OpSet::All() : OpSet::None();
        rank.tp_share = 1.0 / groups.tp;
        rank.shard_ratio = rank.tp_share / static_cast<double>(shape.replicas);
        unit.ranks.push_back(std::move(rank));
      }
      unit.microbatches.assign(static_cast<size_t>(shape.count), shape.microbatch);
      stage.units.push_back(std::move(unit));
    }
    pipeline.stages.push_back(std::move(stage));
  }
  int64_t first = 0;
  for (int64_t v = 0; v < shape.ministages; ++v) {
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      const int64_t own = candidate.layers[s];
      const int64_t count = own / shape.ministages + (v < own % shape.ministages ? 1 : 0);
      pipeline.stages[s].ministages.push_back({first, first + count - 1});
      first += count;
    }
  }
  for (; next < groups.groups.size(); ++next) {
    for (const int d : groups.groups[next]) {
      plan.unused.push_back(
          {setting_.cluster.devices[d].id, absl::StrCat(groups.groups.size(), " groups do not divide into ", shape.stages,
                                                        " stages of ", shape.replicas, " replicas")});
    }
  }
  plan.pipelines = {std::move(pipeline)};
  return plan;
}

absl::StatusOr<Plan> MegatronSearch::Run() {
  size_t largest_node = 1;
  for (const ClusterNode& node : setting_.cluster.nodes) largest_node = std::max(largest_node, node.devices.size());
  const int64_t most_tp = std::min<int64_t>(setting_.request.max_tp, static_cast<int64_t>(largest_node));
  const std::vector<std::vector<int>> orders = DeviceOrders(setting_, KindsBySpeed(setting_), !limits_.cluster_order);
  for (const int tp : TensorParallelDegrees(setting_.workload.model, most_tp)) {
    tp_ = tp;
    FillPasses();
    for (const std::vector<int>& order : orders) {
      groups_.push_back(MakeGroups(setting_, order, tp));
      TryGroups(groups_.size() - 1);
    }
  }
  if (!pins_held_) {
    return absl::InvalidArgumentError("megatron: no uniform layout puts the pinned devices into their stages; drop a pin");
  }
  if (best_.empty()) return NoPlanFits(setting_, "megatron", *least_lack_);
  std::vector<LikedPlan> plans;
  for (const Candidate& candidate : best_) plans.push_back({candidate.seconds, MakePlan(candidate)});
  return BestPlan(setting_, std::move(plans));
}

}  // namespace

absl::StatusOr<Plan> PlanMegatron(const Setting& setting) {
  if (setting.request.zero_stage.value_or(1) > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "megatron keeps parameters and gradients whole: its ZeRO stage is 0 or 1, not ", *setting.request.zero_stage));
  }
  absl::StatusOr<Plan> published = MegatronSearch(setting, PublishedMegatron()).Run();
  if (setting.request.fidelity == Fidelity::kPublished) return published;
  return FasterPlan(setting, MegatronSearch(setting, {}).Run(), std::move(published));
}

}  // namespace motley::planner
