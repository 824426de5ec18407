#include "planner/strategies/hexiscale/hexiscale_problem.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "planner/costs/memory_model.h"
#include "planner/util/at.h"

namespace motley::planner {
namespace {

// All-reduces of a layer and microbatch: two forward, two backward. (Equation 3 repeats the forward's where that runs again; here
// what was summed is kept.)
constexpr int kAllReduces = 4;

}  // namespace

HexiscaleProblem::HexiscaleProblem(const Setting& setting, bool shared_links)
    : setting_(setting), shared_links_(shared_links), usable_bytes_(At(setting.costs.num_kinds()), 0) {
  for (int i = 0; i < setting.num_devices(); ++i) usable_bytes_[At(setting.KindOf(i))] = setting.UsableBytes(i);
}

StageShape HexiscaleProblem::ShapeOf(std::span<const int> devices) const {
  const ClusterDevice& device = setting_.cluster.devices[At(devices[0])];
  return {device.node, device.kind, static_cast<int>(devices.size())};
}

HexiscaleProblem::Line HexiscaleProblem::RingOf(const std::vector<int>& devices) const {
  Line line;
  const double bytes = 1 << 30;
  const double once = setting_.links.SecondsAlone(setting_.links.Ring(Collective::kAllReduce, devices, bytes));
  const double twice = setting_.links.SecondsAlone(setting_.links.Ring(Collective::kAllReduce, devices, 2 * bytes));
  line.seconds_per_byte = (twice - once) / bytes;
  line.latency_seconds = std::max(0.0, 2 * once - twice);
  return line;
}

const HexiscaleProblem::Line& HexiscaleProblem::AllReduce(int node, int degree) {
  const auto [slot, is_new] = all_reduce_.try_emplace({node, degree});
  if (is_new) {
    const std::vector<int>& all = NodeDevices(node);
    slot->second = RingOf({all.begin(), all.begin() + std::min<std::ptrdiff_t>(degree, static_cast<std::ptrdiff_t>(all.size()))});
  }
  return slot->second;
}

HexiscaleProblem::Line HexiscaleProblem::Hop(int from_node, int to_node) {
  const auto [slot, is_new] = hop_.try_emplace({from_node, to_node});
  if (is_new) {
    const int from = NodeDevices(from_node).front(), to = NodeDevices(to_node).back();
    if (from != to) {
      const double bytes = 1 << 30;
      const double once = setting_.links.SecondsAlone(setting_.links.PointToPoint(from, to, bytes));
      const double twice = setting_.links.SecondsAlone(setting_.links.PointToPoint(from, to, 2 * bytes));
      slot->second = {std::max(0.0, 2 * once - twice), (twice - once) / bytes};
    }
  }
  return slot->second;
}

double HexiscaleProblem::UnitSeconds(const StageShape& shape, UnitKind unit, int64_t m) const {
  const double samples = static_cast<double>(m), share = 1.0 / shape.degree;
  return setting_.costs.ForwardSeconds(shape.kind, unit, samples, share) +
         setting_.costs.BackwardSeconds(shape.kind, unit, samples, share);
}

double HexiscaleProblem::LayerSeconds(const StageShape& shape, int64_t m, bool keep) {
  const double samples = static_cast<double>(m), share = 1.0 / shape.degree;
  double seconds = UnitSeconds(shape, UnitKind::kLayer, m);
  if (!keep) seconds += setting_.costs.RecomputeSeconds(shape.kind, UnitKind::kLayer, OpSet::All(), samples, share);
  if (shape.degree > 1) {
    const Line& ring = AllReduce(shape.node, shape.degree);
    const double bytes = static_cast<double>(setting_.costs.BoundaryBytes(samples));
    seconds += kAllReduces * (ring.latency_seconds + bytes * ring.seconds_per_byte);
  }
  return seconds;
}

double HexiscaleProblem::HopSeconds(const StageShape& from, const StageShape& to, double bytes) {
  const Line hop = Hop(from.node, to.node);
  double seconds = hop.latency_seconds + bytes * hop.seconds_per_byte;
  if (to.degree > 1) {
    const Line inside = Hop(to.node, to.node);
    seconds += (to.degree - 1) * (inside.latency_seconds + bytes / to.degree * inside.seconds_per_byte);
  }
  return 2 * seconds;
}

int64_t HexiscaleProblem::PeakBytes(const StageShape& shape, const Place& place, int64_t layers) const {
  RankDuty duty;
  duty.kind = shape.kind;
  duty.layers = layers;
  duty.largest_ministage = layers;
  duty.embedding = place.first;
  duty.head = place.last();
  duty.schedule = ScheduleFamily::k1F1B;
  duty.stage = 0;
  duty.num_stages = place.after + 1;
  duty.zero_stage = 0;
  duty.share = 1.0 / shape.degree;
  duty.tp_share = 1.0 / shape.degree;
  duty.replica_share = place.zero_stage > 0 ? 1.0 / place.replicas : 1;
  duty.replica_gradients = place.zero_stage > 1;
  duty.sums_across = place.replicas > 1;
  duty.recompute = place.keep ? OpSet::None() : OpSet::All();
  duty.in_flight = place.in_flight;
  duty.from_previous = place.first ? 0 : place.m;
  duty.from_next = place.last() ? 0 : place.m;
  duty.samples = place.samples;
  return MemoryOf(setting_.costs, duty, place.in_flight + 1, place.m, 0).total();
}

int64_t HexiscaleProblem::MostLayers(const StageShape& shape, const Place& place) const {
  const int64_t usable = usable_bytes_[At(shape.kind)];
  int64_t low = 0, high = setting_.workload.model.num_layers;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (PeakBytes(shape, place, middle) <= usable)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

int HexiscaleProblem::ClassOf(const StageShape& shape) {
  const auto [slot, is_new] = class_of_.try_emplace(shape, 0);
  if (is_new) {
    const Line ring = shape.degree > 1 ? AllReduce(shape.node, shape.degree) : Line();
    const auto key = std::make_tuple(shape.kind, shape.degree, ring.latency_seconds, ring.seconds_per_byte);
    slot->second = classes_.try_emplace(key, static_cast<int>(classes_.size())).first->second;
  }
  return slot->second;
}

const StageCost& HexiscaleProblem::CostAlone(const StageShape& shape, const Place& place, CostsAlone* known) {
  // Invariant: fields do not overlap, for a pipeline has no more stages than the model layers and a class needs a device.
  const uint64_t key = static_cast<uint64_t>(ClassOf(shape)) << 42 | static_cast<uint64_t>(place.after) << 22 |
                       static_cast<uint64_t>(place.in_flight) << 2 | (place.first ? 2u : 0u) | (place.keep ? 1u : 0u);
  const auto [slot, is_new] = known->try_emplace(key);
  if (is_new) {
    StageCost& cost = slot->second;
    cost.layer_seconds = LayerSeconds(shape, place.m, place.keep);
    if (place.replicas > 0) cost.most_layers = MostLayers(shape, place);
    if (place.first) cost.fixed_seconds += UnitSeconds(shape, UnitKind::kEmbedding, place.m);
    if (place.last()) cost.fixed_seconds += UnitSeconds(shape, UnitKind::kHead, place.m);
  }
  return slot->second;
}

HexiscaleProblem::Place HexiscaleProblem::PlaceOf(int stage, int num_stages, int64_t m, int64_t count, bool keep, int replicas,
                                                  int zero_stage) const {
  Place place{num_stages - 1 - stage, stage == 0, m, 0, keep, replicas, zero_stage};
  place.in_flight = std::max<int64_t>(1, InFlight(ScheduleFamily::k1F1B, stage, num_stages, 1, count));
  if (replicas > 0 && (place.first || place.last())) place.samples = m * count;
  return place;
}

std::vector<StageCost> HexiscaleProblem::StageCosts(const std::vector<StageShape>& shapes, int64_t m, int64_t count,
                                                    const std::vector<bool>& keep, int replicas, int zero_stage) {
  const int stages = static_cast<int>(shapes.size());
  const double boundary = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(m)));
  std::vector<StageCost> costs;
  costs.reserve(shapes.size());
  for (int j = 0; j < stages; ++j) {
    const bool keeps = !keep.empty() && keep[At(j)];
    const Place place = PlaceOf(j, stages, m, count, keeps, replicas, zero_stage);
    costs.push_back(CostAlone(shapes[At(j)], place, &costs_[{m, replicas, zero_stage, place.samples}]));
    if (j + 1 < stages) costs.back().fixed_seconds += HopSeconds(shapes[At(j)], shapes[At(j + 1)], boundary);
  }
  return costs;
}

int64_t HexiscaleProblem::MissingBytes(const StageShape& shape, int stage, int num_stages, int64_t m, int64_t count, bool keep,
                                       int replicas, int zero_stage) {
  const Place place = PlaceOf(stage, num_stages, m, count, keep, replicas, zero_stage);
  return std::max<int64_t>(0, PeakBytes(shape, place, 1) - usable_bytes_[At(shape.kind)]);
}

double HexiscaleProblem::PipelineTime(const HexiscalePipeline& pipeline) {
  std::vector<StageShape> shapes;
  std::vector<int64_t> layers;
  std::vector<bool> keep;
  for (const HexiscaleStage& stage : pipeline.stages) {
    shapes.push_back(ShapeOf(stage.devices));
    layers.push_back(stage.layers);
    keep.push_back(stage.keep);
  }
  const int64_t count = pipeline.microbatches();
  return PipelineSeconds(StageCosts(shapes, pipeline.microbatch, count, keep, 0, 0), layers, count);
}

const HexiscaleProblem::Ring& HexiscaleProblem::SyncRing(const HexiscaleLayout& layout, const std::vector<size_t>& stage_of) {
  std::vector<int> leaders;
  for (size_t i = 0; i < stage_of.size(); ++i) leaders.push_back(layout.pipelines[i].stages[stage_of[i]].devices[0]);
  std::sort(leaders.begin(), leaders.end());
  const auto [slot, is_new] = sync_.try_emplace(std::move(leaders));
  if (is_new) {
    Ring& ring = slot->second;
    ring.line = RingOf(slot->first);
    const double bytes = 1 << 20;
    if (shared_links_) ring.loads = setting_.links.Ring(Collective::kAllReduce, slot->first, bytes).loads;
    for (LinkLoad& load : ring.loads) load.bytes /= bytes;
  }
  return slot->second;
}

double HexiscaleProblem::SyncSeconds(const HexiscaleLayout& layout) {
  const size_t pipelines = layout.pipelines.size();
  if (pipelines < 2) return 0;
  const int64_t num_layers = setting_.workload.model.num_layers;
  const double element_bytes = setting_.costs.RingBytes(Collective::kAllReduce);
  std::vector<double> carried(shared_links_ ? At(setting_.links.num_resources()) : 0, 0);
  const auto reduce = [&](const std::vector<size_t>& stage_of, UnitKind unit, int64_t count) {
    std::set<int> nodes;
    size_t smallest = SIZE_MAX;
    for (size_t i = 0; i < pipelines; ++i) {
      const std::vector<int>& devices = layout.pipelines[i].stages[stage_of[i]].devices;
      nodes.insert(setting_.cluster.devices[At(devices[0])].node);
      smallest = std::min(smallest, devices.size());
    }
    // Between nodes all chunks of a layer pass the same network card; inside one they go side by side.
    const double part = nodes.size() > 1 ? 1 : 1.0 / static_cast<double>(smallest);
    const Ring& ring = SyncRing(layout, stage_of);
    const double bytes = element_bytes * static_cast<double>(setting_.costs.UnitElements(unit)) * part;
    for (const LinkLoad& load : ring.loads) carried[At(load.resource)] += static_cast<double>(count) * bytes * load.bytes;
    return static_cast<double>(count) * (ring.line.latency_seconds + bytes * ring.line.seconds_per_byte);
  };

  std::vector<size_t> at(pipelines, 0);  // stage that holds the current layer
  std::vector<int64_t> left(pipelines);  // its layers still to come
  std::vector<std::vector<double>> seconds(pipelines);
  for (size_t i = 0; i < pipelines; ++i) {
    left[i] = layout.pipelines[i].stages[0].layers;
    seconds[i].assign(layout.pipelines[i].stages.size(), 0);
  }
  const double embedding = reduce(at, UnitKind::kEmbedding, 1);
  for (size_t i = 0; i < pipelines; ++i) seconds[i][0] += embedding;
  for (int64_t done = 0; done < num_layers;) {
    const int64_t run = *std::min_element(left.begin(), left.end());
    const double took = reduce(at, UnitKind::kLayer, run);
    done += run;
    for (size_t i = 0; i < pipelines; ++i) {
      seconds[i][at[i]] += took;
      left[i] -= run;
      if (left[i] == 0 && done < num_layers) left[i] = layout.pipelines[i].stages[++at[i]].layers;
    }
  }
  const double head = reduce(at, UnitKind::kHead, 1);
  double slowest = 0;
  for (size_t i = 0; i < pipelines; ++i) {
    seconds[i].back() += head;
    slowest = std::max(slowest, *std::max_element(seconds[i].begin(), seconds[i].end()));
  }
  for (size_t r = 0; r < carried.size(); ++r) {
    if (carried[r] > 0) slowest = std::max(slowest, carried[r] / setting_.links.Capacity(static_cast<int>(r)));
  }
  return slowest;
}

// Of one byte, on the links that every device of the nodes uses: those that two different paths have in common.
const std::vector<LinkLoad>& HexiscaleProblem::HopLoads(int from_node, int to_node) {
  const auto [slot, is_new] = hop_loads_.try_emplace({from_node, to_node});
  if (!is_new) return slot->second;
  const double bytes = 1 << 20;
  const std::vector<int>&from = NodeDevices(from_node), &to = NodeDevices(to_node);
  const std::vector<LinkLoad> first = setting_.links.PointToPoint(from.front(), to.front(), bytes).loads;
  const std::vector<LinkLoad> last = setting_.links.PointToPoint(from.back(), to.back(), bytes).loads;
  for (const LinkLoad& load : first) {
    const bool common =
        std::any_of(last.begin(), last.end(), [&](const LinkLoad& other) { return other.resource == load.resource; });
    if (common) slot->second.push_back({load.resource, load.bytes / bytes});
  }
  return slot->second;
}

// What the busiest link between nodes takes to carry all pipelines' boundaries and their gradients.
double HexiscaleProblem::HopsSeconds(const HexiscaleLayout& layout) {
  std::map<std::pair<int, int>, double> bytes;  // by directed pair of nodes
  for (const HexiscalePipeline& pipeline : layout.pipelines) {
    const double boundary = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(pipeline.batch)));
    for (size_t j = 0; j + 1 < pipeline.stages.size(); ++j) {
      const int from = ShapeOf(pipeline.stages[j].devices).node, to = ShapeOf(pipeline.stages[j + 1].devices).node;
      if (from == to) continue;
      bytes[{from, to}] += boundary;
      bytes[{to, from}] += boundary;
    }
  }
  std::vector<double> carried(At(setting_.links.num_resources()), 0);
  for (const auto& [pair, amount] : bytes) {
    const std::vector<LinkLoad>& loads = HopLoads(pair.first, pair.second);
    for (const LinkLoad& load : loads) carried[At(load.resource)] += amount * load.bytes;
  }
  double slowest = 0;
  for (size_t r = 0; r < carried.size(); ++r) {
    if (carried[r] > 0) slowest = std::max(slowest, carried[r] / setting_.links.Capacity(static_cast<int>(r)));
  }
  return slowest;
}

double HexiscaleProblem::StepSeconds(const HexiscaleLayout& layout) {
  double slowest = 0;
  for (const HexiscalePipeline& pipeline : layout.pipelines) slowest = std::max(slowest, PipelineTime(pipeline));
  if (shared_links_) slowest = std::max(slowest, HopsSeconds(layout));
  return slowest + SyncSeconds(layout);
}

}  // namespace motley::planner
