// Baton on a setting. The paper (12 pages of poster text) gives three levels and no algorithm; docs/inside/strategies/baton.md
// has ours:
//
//   line-ups     which devices form tensor-parallel units and their order in the pipeline (baton_lineup.h), by how many replicas
//                and what microbatch; best first by a lower bound that ignores memory, until no bound beats the few best found
//   level one    layers to stages: one by one to the stage that would then take least
//   levels two and three   shares of a layer inside each unit and recomputation by rank (baton_unit.h), asked for by level one
//
// Replicas inside stages, any microbatch that divides, several orders of devices, a degree for each kind of node, the slowest
// kinds left out. As published: within baton_limits.h.
#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/in_parallel.h"
#include "planner/groups/megatron_layout.h"
#include "planner/published/baton_limits.h"
#include "planner/search/best_plan.h"
#include "planner/search/pipeline_seconds.h"
#include "planner/setting/blank_plan.h"
#include "planner/setting/least_lack.h"
#include "planner/strategies/baton/baton_lineup.h"
#include "planner/strategies/baton/baton_unit.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/megatron/megatron_cut.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr size_t kEstimates = 16;

// Everything but the layers of each stage.
struct Shape {
  double least_seconds = 0;  // lower bound, first: shapes are sorted by it
  size_t line_up = 0;
  int64_t stages = 1, replicas = 1, microbatch = 1;
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

struct StageChoice {
  double seconds = kInfinity;  // of one microbatch, all-reduces of the unit included
  BatonRole role;
  DeviceLack lack;  // where it does not fit: of the unit that lacks most
};

struct Candidate {
  double seconds = kInfinity;
  Shape shape;
  std::vector<BatonRole> roles;  // by stage
};

class BatonSearch {
 public:
  BatonSearch(const Setting& setting, BatonLimits limits)
      : setting_(setting), costs_(setting.costs), limits_(limits), units_(setting) {}

  absl::StatusOr<Plan> Run();

 private:
  int ClassOf(const std::vector<int>& unit);
  std::vector<Shape> MakeShapes();
  void AddShapes(size_t line_up, std::vector<Shape>* shapes);
  bool MayRun(size_t line_up, const Shape& shape) const;
  double LeastSeconds(const Shape& shape);
  int ZeroStage(const Shape& shape) const { return setting_.request.zero_stage.value_or(shape.replicas > 1 ? 1 : 0); }

  void TryShape(const Shape& shape);
  StageChoice PriceStage(const Shape& shape, const GroupCut& cut, int64_t stage, int64_t layers);
  std::vector<StageChoice> SplitLayers(const Shape& shape, const GroupCut& cut);
  void NoteLack(const Shape& shape, const GroupCut& cut, const std::vector<StageChoice>& chosen, int64_t rest);
  double Synchronise(const GroupCut& cut, size_t stage, int64_t layers, size_t ranks) const;
  Plan MakePlan(const Candidate& candidate);
  UnitPlan MakeUnit(const Candidate& candidate, const std::vector<int>& devices, const BatonRole& role);

  const Setting& setting_;
  const Costs& costs_;
  const BatonLimits limits_;
  BatonUnitSolver units_;
  std::vector<BatonLineUp> line_ups_;
  std::vector<std::vector<int>> classes_;                              // by line-up: of its units
  std::map<std::tuple<size_t, int64_t, int64_t>, GroupCut> cuts_;      // by line-up, stages, replicas
  absl::flat_hash_map<std::pair<int, int64_t>, double> layer_bounds_;  // by class of unit and microbatch
  std::vector<Candidate> best_;                                        // ascending seconds, at most kEstimates
  std::optional<DeviceLack> least_lack_;
  int64_t questions_ = 0;  // of stages, bounded by the request's budget
};

int BatonSearch::ClassOf(const std::vector<int>& unit) {
  std::vector<int> kinds;  // ascending, as the unit's devices are
  for (const int d : unit) kinds.push_back(setting_.KindOf(d));
  return units_.UnitClass(std::move(kinds));
}

// The pipeline moves at the pace of its slowest stage, which with all layers cut anywhere is the harmonic mean of the stages'
// layer times.
double BatonSearch::LeastSeconds(const Shape& shape) {
  const std::vector<int>& classes = classes_[shape.line_up];
  BatonRole role;
  role.microbatch = shape.microbatch;
  double speed = 0, fastest_layer = kInfinity;
  for (int64_t s = 0; s < shape.stages; ++s) {
    double layer = 0;
    for (int64_t r = 0; r < shape.replicas; ++r) {
      const int unit_class = classes[s * shape.replicas + r];
      const auto [at, is_new] = layer_bounds_.try_emplace({unit_class, shape.microbatch}, 0);
      if (is_new) at->second = units_.LeastSeconds(unit_class, role);
      layer = std::max(layer, at->second);
    }
    speed += 1 / layer;
    fastest_layer = std::min(fastest_layer, layer);
  }
  const double layers = static_cast<double>(setting_.workload.model.num_layers);
  const double count = static_cast<double>(setting_.workload.global_batch / (shape.replicas * shape.microbatch));
  return (count - 1) * layers / speed + std::max(layers / speed, layers * fastest_layer);
}

// Units of several ranks are alike in a stage: unlike slices meet in more collectives than are priced
// here.
bool BatonSearch::MayRun(size_t line_up, const Shape& shape) const {
  const std::vector<std::vector<int>>& units = line_ups_[line_up].units;
  for (int64_t u = 0; u < shape.stages * shape.replicas; ++u) {
    const int64_t first = u - u % shape.replicas;
    if (units[u].size() == 1 && units[first].size() == 1) continue;
    if (classes_[line_up][u] != classes_[line_up][first]) return false;
  }
  return true;
}

void BatonSearch::AddShapes(size_t line_up, std::vector<Shape>* shapes) {
  const int64_t units = static_cast<int64_t>(line_ups_[line_up].units.size());
  const int64_t layers = setting_.workload.model.num_layers, batch = setting_.workload.global_batch;
  Shape shape;
  shape.line_up = line_up;
  for (shape.replicas = 1; shape.replicas <= (limits_.no_replicas ? 1 : units); ++shape.replicas) {
    const bool power = (shape.replicas & (shape.replicas - 1)) == 0;
    if (batch % shape.replicas != 0 || (!power && units % shape.replicas != 0)) continue;
    shape.stages = std::min(layers, units / shape.replicas);
    if (!PinsHold(setting_, line_ups_[line_up].units, shape.stages, shape.replicas) || !MayRun(line_up, shape)) continue;
    const int64_t own = batch / shape.replicas;
    for (shape.microbatch = 1; shape.microbatch <= own; ++shape.microbatch) {
      if (own % shape.microbatch != 0 || (limits_.powers_of_two && (shape.microbatch & (shape.microbatch - 1)) != 0)) continue;
      shape.least_seconds = LeastSeconds(shape);
      shapes->push_back(shape);
    }
  }
}

std::vector<Shape> BatonSearch::MakeShapes() {
  line_ups_ = MakeLineUps(setting_, KindsBySpeed(setting_), std::min<int64_t>(setting_.request.max_tp, units_.parts()), limits_);
  std::vector<Shape> shapes;
  for (size_t i = 0; i < line_ups_.size(); ++i) {
    std::vector<int>& classes = classes_.emplace_back();
    for (const std::vector<int>& unit : line_ups_[i].units) classes.push_back(ClassOf(unit));
    AddShapes(i, &shapes);
  }
  std::sort(shapes.begin(), shapes.end());
  return shapes;
}

// The slowest of the stage's units.
StageChoice BatonSearch::PriceStage(const Shape& shape, const GroupCut& cut, int64_t stage, int64_t layers) {
  ++questions_;
  const int64_t count = setting_.workload.global_batch / (shape.replicas * shape.microbatch);
  BatonRole role;
  role.layers = layers;
  role.embedding = stage == 0;
  role.head = stage + 1 == shape.stages;
  role.microbatch = shape.microbatch;
  role.in_flight = InFlight(ScheduleFamily::k1F1B, static_cast<int>(stage), static_cast<int>(shape.stages), 1, count);
  role.replicas = shape.replicas;
  role.zero_stage = ZeroStage(shape);
  const double reduce =
      cut.tensor_reduce[stage].At(static_cast<double>(costs_.BoundaryBytes(static_cast<double>(shape.microbatch))));
  StageChoice choice;
  choice.seconds = 0;
  choice.role = role;
  int before = -1;
  for (int64_t r = 0; r < shape.replicas && choice.seconds < kInfinity; ++r) {
    const size_t u = static_cast<size_t>(stage * shape.replicas + r);
    const int unit_class = classes_[shape.line_up][u];
    if (std::exchange(before, unit_class) == unit_class) continue;  // the same again
    const std::vector<int>& devices = line_ups_[shape.line_up].units[u];
    const BatonUnit& unit = units_.Solve(unit_class, role);
    if (!unit.fits) {
      choice.seconds = kInfinity;
      choice.lack = {unit.missing_bytes, devices[unit.missing_rank]};
      continue;
    }
    // Two forward and two backward by layer, one for the embedding, one for the head's input.
    const double times = static_cast<double>(4 * layers + (role.embedding ? 1 : 0) + (role.head ? 1 : 0));
    choice.seconds = std::max(choice.seconds, unit.seconds + (devices.size() > 1 ? times * reduce : 0));
  }
  return choice;
}

double BatonSearch::Synchronise(const GroupCut& cut, size_t stage, int64_t layers, size_t ranks) const {
  const double elements = static_cast<double>(costs_.UnitElements(UnitKind::kLayer)) / static_cast<double>(ranks);
  return static_cast<double>(layers) * (cut.replica_gather[stage].At(elements * costs_.RingBytes(Collective::kAllGather)) +
                                        cut.replica_reduce[stage].At(elements * costs_.RingBytes(Collective::kReduceScatter)));
}

// Level one. Empty: the layers do not fit; what then lacks is noted.
std::vector<StageChoice> BatonSearch::SplitLayers(const Shape& shape, const GroupCut& cut) {
  std::vector<StageChoice> chosen(static_cast<size_t>(shape.stages)), next(chosen.size());
  int64_t rest = setting_.workload.model.num_layers;
  using Entry = std::pair<double, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (size_t s = 0; s < chosen.size(); ++s) {
    next[s] = PriceStage(shape, cut, static_cast<int64_t>(s), 1);
    queue.emplace(-1, s);  // every stage takes one
  }
  for (; rest > 0; --rest) {
    const size_t s = queue.top().second;
    if (next[s].seconds == kInfinity) break;
    queue.pop();
    chosen[s] = next[s];
    if (rest > 1) next[s] = PriceStage(shape, cut, static_cast<int64_t>(s), chosen[s].role.layers + 1);
    queue.emplace(next[s].seconds, s);
  }
  if (rest == 0) return chosen;
  if (best_.empty()) NoteLack(shape, cut, chosen, rest);
  return {};
}

// As if the layers that are left were spread evenly.
void BatonSearch::NoteLack(const Shape& shape, const GroupCut& cut, const std::vector<StageChoice>& chosen, int64_t rest) {
  DeviceLack most;
  for (size_t s = 0; s < chosen.size(); ++s) {
    const int64_t placed = chosen[s].seconds < kInfinity ? chosen[s].role.layers : 0;
    const int64_t more = (rest + shape.stages - 1) / shape.stages;
    const DeviceLack lack = PriceStage(shape, cut, static_cast<int64_t>(s), placed + more).lack;
    if (lack.bytes > most.bytes) most = lack;
  }
  if (most.bytes > 0 && (!least_lack_ || most.bytes < least_lack_->bytes)) least_lack_ = most;
}

void BatonSearch::TryShape(const Shape& shape) {
  const std::vector<std::vector<int>>& groups = line_ups_[shape.line_up].units;
  const auto [slot, is_new] = cuts_.try_emplace({shape.line_up, shape.stages, shape.replicas});
  if (is_new) slot->second = CutGroups(setting_, groups, shape.stages, shape.replicas);
  const GroupCut& cut = slot->second;
  const std::vector<StageChoice> chosen = SplitLayers(shape, cut);
  if (chosen.empty()) return;
  Candidate candidate;
  candidate.shape = shape;
  const double boundary = static_cast<double>(costs_.BoundaryBytes(static_cast<double>(shape.microbatch)));
  PipelineLoad load;
  load.microbatches = setting_.workload.global_batch / (shape.replicas * shape.microbatch);
  load.link_seconds = cut.links_seconds_per_byte * boundary;
  for (const TransferLine& send : cut.sends) load.send_seconds.push_back(send.At(boundary));
  double synchronise = 0;
  for (size_t s = 0; s < chosen.size(); ++s) {
    candidate.roles.push_back(chosen[s].role);
    load.stage_seconds.push_back(chosen[s].seconds);
    const size_t ranks = groups[s * static_cast<size_t>(shape.replicas)].size();
    synchronise = std::max(synchronise, Synchronise(cut, s, chosen[s].role.layers, ranks));
  }
  candidate.seconds = PipelineSeconds(load) + synchronise;
  KeepFastest(std::move(candidate), kEstimates, &best_);
}

UnitPlan BatonSearch::MakeUnit(const Candidate& candidate, const std::vector<int>& devices, const BatonRole& role) {
  const BatonUnit& solved = units_.Solve(ClassOf(devices), role);
  UnitPlan unit;
  for (size_t i = 0; i < devices.size(); ++i) {
    RankPlan rank = RankOn(setting_, devices[i]);
    rank.recompute = solved.ranks[i].recompute;
    rank.tp_share = static_cast<double>(solved.ranks[i].parts) / static_cast<double>(units_.parts());
    rank.shard_ratio = rank.tp_share / static_cast<double>(role.replicas);
    unit.ranks.push_back(std::move(rank));
  }
  const int64_t count = setting_.workload.global_batch / (candidate.shape.replicas * role.microbatch);
  unit.microbatches.assign(static_cast<size_t>(count), role.microbatch);
  return unit;
}

Plan BatonSearch::MakePlan(const Candidate& candidate) {
  const BatonLineUp& line_up = line_ups_[candidate.shape.line_up];
  Plan plan = BlankPlan(setting_, "baton", ScheduleFamily::k1F1B);
  plan.unused.insert(plan.unused.end(), line_up.unused.begin(), line_up.unused.end());
  PipelinePlan pipeline;
  int64_t first = 0;
  size_t next = 0;
  for (const BatonRole& role : candidate.roles) {
    StagePlan stage;
    stage.zero_stage = role.zero_stage;
    stage.ministages = {{first, first + role.layers - 1}};
    first += role.layers;
    for (int64_t r = 0; r < role.replicas; ++r) stage.units.push_back(MakeUnit(candidate, line_up.units[next++], role));
    pipeline.stages.push_back(std::move(stage));
  }
  for (; next < line_up.units.size(); ++next) {
    for (const int d : line_up.units[next]) {
      plan.unused.push_back(
          {setting_.cluster.devices[d].id, absl::StrCat(line_up.units.size(), " units are more than ", candidate.shape.stages,
                                                        " stages of ", candidate.shape.replicas, " take")});
    }
  }
  plan.pipelines = {std::move(pipeline)};
  return plan;
}

absl::StatusOr<Plan> BatonSearch::Run() {
  const std::vector<Shape> shapes = MakeShapes();
  if (shapes.empty()) {
    return absl::InvalidArgumentError("baton: no line-up of units puts the pinned devices into their stages; drop a pin");
  }
  for (const Shape& shape : shapes) {
    if (best_.size() == kEstimates && shape.least_seconds >= best_.back().seconds) break;
    if (!best_.empty() && questions_ >= setting_.request.budget_nodes) break;
    TryShape(shape);
  }
  if (best_.empty()) {
    if (!least_lack_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("baton: no plan fits: ", units_.parts(), " partition units of a layer do not go round; lower --max-tp"));
    }
    return NoPlanFits(setting_, "baton", *least_lack_);
  }
  std::vector<LikedPlan> plans;
  for (const Candidate& candidate : best_) plans.push_back({candidate.seconds, MakePlan(candidate)});
  return BestPlan(setting_, std::move(plans));
}

}  // namespace

absl::StatusOr<Plan> PlanBaton(const Setting& setting) {
  if (setting.request.zero_stage.value_or(0) > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("baton keeps parameters and gradients whole: its ZeRO stage is 0 or 1, not ", *setting.request.zero_stage));
  }
  if (setting.request.fidelity == Fidelity::kPublished) return BatonSearch(setting, PublishedBaton()).Run();
  absl::StatusOr<Plan> tuned, published;
  InParallel(
      2, [&](size_t i) { (i == 0 ? tuned : published) = BatonSearch(setting, i == 0 ? BatonLimits() : PublishedBaton()).Run(); });
  return FasterPlan(setting, std::move(tuned), std::move(published));
}

}  // namespace motley::planner
