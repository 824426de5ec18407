#include "planner/pricing/prediction.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/graph/group_flows.h"
#include "planner/graph/pass_seconds.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

constexpr double kSecondsPerHour = 3600;

// Of the rank's own compute; the lane of a tensor-parallel unit also waits for the slowest rank and for its sums.
double BusySeconds(const Setting& setting, const PlanView& view, const RankView& rank) {
  const StageView& stage = view.stages[rank.stage];
  const Part all{stage.embedding, 0, stage.layers, stage.head};
  const bool splits = TraitsOf(view.schedule).splits_backward;
  double seconds = 0;
  int64_t size = -1;
  double of_size = 0;
  for (const int64_t m : stage.plan->units[rank.unit].microbatches) {
    if (m != size) {
      const PassSeconds pass = SecondsOf(setting.costs, rank, m);
      of_size = pass.Forward(all) + pass.Recompute(all) + pass.Backward(all, splits);
      size = m;
    }
    seconds += of_size;
  }
  int64_t elements = 0;
  for (const Element& element : view.pipelines[rank.pipeline].elements) {
    if (element.stage == rank.stage) elements += ElementsOf(setting.costs, view, element);
  }
  return seconds + setting.costs.OptimizerSeconds(rank.kind, OwnedPart(view, rank) * static_cast<double>(elements));
}

RankPlan& RankIn(Plan* plan, const PlanView& view, size_t r) {
  const RankView& rank = view.ranks[r];
  const StageView& stage = view.stages[rank.stage];
  UnitPlan& unit = plan->pipelines[rank.pipeline].stages[stage.index].units[rank.unit];
  return unit.ranks[rank.plan - unit.ranks.data()];
}

// Devices that lack the same memory, told once.
struct Lack {
  std::string first_device, card;
  int64_t peak_bytes = 0, usable_bytes = 0;
  int devices = 0;

  bool SameAs(const Lack& other) const {
    return card == other.card && peak_bytes == other.peak_bytes && usable_bytes == other.usable_bytes;
  }
  std::string ToText() const {
    const bool one = devices == 1;
    return absl::StrCat(first_device, " (", card, ")", one ? "" : absl::StrCat(" and ", devices - 1, " more"),
                        one ? " needs " : " need ", BytesText(peak_bytes), " of ", BytesText(usable_bytes),
                        one ? " usable, lacks " : " usable each, lack ", BytesText(peak_bytes - usable_bytes));
  }
};

// Names the first rank that lacks memory.
void BindByMemory(const Setting& setting, const PlanView& view, Evaluation* result) {
  for (size_t r = 0; r < view.ranks.size() && !result->does_not_fit.empty(); ++r) {
    const RankPlan& rank = RankIn(&result->plan, view, r);
    if (rank.predicted.peak_bytes <= setting.UsableBytes(view.ranks[r].device)) continue;
    result->plan.predicted.binding_constraint = absl::StrCat("memory of ", rank.device.value());
    return;
  }
}

constexpr double kAlike = 1e-4;  // ranks of one card differ by the few elements that their shares are rounded to

// The first lane that is as busy as any.
size_t FindBusiest(const Timeline& timeline) {
  const auto most = static_cast<double>(*std::max_element(timeline.busy.begin(), timeline.busy.end()));
  const auto is_busy = [most](Picoseconds busy) { return static_cast<double>(busy) >= most * (1 - kAlike); };
  return static_cast<size_t>(std::find_if(timeline.busy.begin(), timeline.busy.end(), is_busy) - timeline.busy.begin());
}

// The actor of a lane, with those whose lane of this kind is as busy. A name that stands for several ranks says so itself.
std::string ActorsOf(size_t lane, const StepGraph& graph, const Timeline& timeline) {
  const Actor& actor = graph.actors[lane / kNumLanes];
  int others = 0;
  for (size_t i = lane % kNumLanes; i < timeline.busy.size(); i += kNumLanes) {
    const auto busy = static_cast<double>(timeline.busy[i]), most = static_cast<double>(timeline.busy[lane]);
    others += i != lane && std::abs(busy - most) <= kAlike * most ? graph.actors[i / kNumLanes].count : 0;
  }
  return actor.count > 1 || others == 0 ? actor.name : absl::StrCat(actor.name, " and ", others, " like it");
}

// The busiest lane; of a lane that carries several kinds of tasks, the kind that takes longest.
std::string BusiestLane(const StepGraph& graph, const Timeline& timeline) {
  const size_t lane = FindBusiest(timeline);
  const std::string actor = ActorsOf(lane, graph, timeline);
  Picoseconds compute = 0, gather = 0, scatter = 0, reduce = 0;
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (std::find(task.lanes.begin(), task.lanes.end(), static_cast<int32_t>(lane)) == task.lanes.end()) continue;
    const Picoseconds span = timeline.spans[t].end - timeline.spans[t].begin;
    if (task.kind == TaskKind::kGather) gather += span;
    if (task.kind == TaskKind::kReduceScatter) scatter += span;
    if (task.kind == TaskKind::kAllReduce) reduce += span;
    if (IsCompute(task.kind)) compute += span;
  }
  switch (static_cast<Lane>(lane % kNumLanes)) {
    case Lane::kCompute:
      return absl::StrCat(compute >= reduce ? "compute of " : "tensor-parallel all-reduce of ", actor);
    case Lane::kCollective:
      if (gather >= std::max(scatter, reduce)) return "all-gather";
      return scatter >= reduce ? "reduce-scatter" : "all-reduce";
    case Lane::kSend:
      return absl::StrCat("activations from ", actor);
    case Lane::kCopy:
      return absl::StrCat("host copies of ", actor);
    case Lane::kReceive:
      return absl::StrCat("activations to ", actor);
  }
  return "";
}

// Of the step, beyond the model's own.
double RecomputedFlops(const Setting& setting, const PlanView& view) {
  double flops = 0;
  for (const RankView& rank : view.ranks) {
    const StageView& stage = view.stages[rank.stage];
    const auto samples = static_cast<double>(stage.plan->units[rank.unit].batch());
    flops += static_cast<double>(stage.layers) * setting.costs.RecomputeFlops(rank.recompute, samples, rank.plan->tp_share);
  }
  return flops;
}

// Of all devices of the plan together, a second; 0: the peak of one of them is not known.
double PeakFlops(const Setting& setting, const PlanView& view) {
  double sum = 0;
  for (const RankView& rank : view.ranks) {
    const double peak = setting.cluster.PeakFlops(rank.kind, setting.workload.dtype);
    if (peak <= 0) return 0;
    sum += peak;
  }
  return sum;
}

void AddRates(const Setting& setting, const PlanView& view, PlanPrediction* predicted) {
  const Cluster& cluster = setting.cluster;
  const auto samples = static_cast<double>(setting.workload.global_batch);
  const double step = predicted->step_seconds, peaks = PeakFlops(setting, view);
  if (step <= 0) return;
  predicted->tokens_per_second = samples * static_cast<double>(setting.workload.seq_len) / step;
  if (peaks > 0) {
    const double model = setting.costs.ModelFlops(samples);
    predicted->mfu = model / (step * peaks);
    predicted->hfu = (model + RecomputedFlops(setting, view)) / (step * peaks);
  }
  if (predicted->hfu > 1) {
    predicted->notes.push_back(
        absl::StrFormat("utilisation above 100 %% (MFU %.0f %%, HFU %.0f %%): the devices are faster than the peaks "
                        "given for them, or the measured times are wrong (milliseconds taken for seconds?)",
                        100 * predicted->mfu, 100 * predicted->hfu));
  }
  double busy = 0, ranks = 0, dollars = 0;
  std::set<int> nodes;
  for (const RankView& rank : view.ranks) {
    const double peak = cluster.FlopsPerSecond(rank.kind, setting.workload.dtype);
    busy += peak * rank.plan->predicted.busy_seconds;
    ranks += peak;
    nodes.insert(cluster.devices[rank.device].node);
  }
  if (ranks > 0) predicted->idle_share = std::max(0.0, 1 - busy / (ranks * step));
  bool priced = true;
  for (const int n : nodes) {
    const double price = cluster.nodes[n].price_per_hour;
    dollars += price;
    priced &= price > 0;
  }
  if (priced && dollars > 0) predicted->tokens_per_dollar = predicted->tokens_per_second * kSecondsPerHour / dollars;
}

// How far links and schedules of other programs are off, of the part of a step in which the busiest device does not compute.
constexpr double kRestDeviation = 0.5;
constexpr double kNineOfTen = 1.645;  // deviations that hold 90 % of a normal distribution

// Of the step: in which the device that computes longest waits for links and for others.
double RestOfStep(const StepGraph& graph, const Timeline& timeline) {
  std::vector<Picoseconds> compute(graph.actors.size(), 0);
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    if (!IsCompute(graph.tasks[t].kind) || graph.tasks[t].lanes.empty()) continue;
    compute[static_cast<size_t>(graph.tasks[t].lanes.front()) / kNumLanes] += timeline.spans[t].end - timeline.spans[t].begin;
  }
  const auto most = static_cast<double>(compute.empty() ? 0 : *std::max_element(compute.begin(), compute.end()));
  return timeline.end > 0 ? std::max(0.0, 1 - most / static_cast<double>(timeline.end)) : 0;
}

// In nine of ten cases. Doubts of cards and of all that is not compute are independent, and add up in squares.
void AddConfidence(const Setting& setting, const PlanView& view, double rest, PlanPrediction* predicted) {
  std::set<int> kinds;
  for (const RankView& rank : view.ranks) kinds.insert(rank.kind);
  double low = 1, high = 1;
  for (const int kind : kinds) {
    const Provenance& provenance = setting.costs.provenance(kind);
    low = std::min(low, provenance.low);
    high = std::max(high, provenance.high);
    const std::string& card = setting.cluster.kinds[kind].name;
    if (!provenance.doubt.empty())
      predicted->notes.push_back(absl::StrCat(card, ": ", provenance.doubt, " (", provenance.source, ")"));
    if (!provenance.estimated) continue;
    predicted->estimated = true;
    predicted->notes.push_back(absl::StrCat(card, ": ", provenance.source));
  }
  const double of_rest = predicted->estimated ? kNineOfTen * kRestDeviation * rest : 0;
  predicted->low_seconds = predicted->step_seconds * std::exp(-std::hypot(std::log(low), of_rest));
  predicted->high_seconds = predicted->step_seconds * std::exp(std::hypot(std::log(high), of_rest));
}

}  // namespace

absl::Status CheckWorkload(const Setting& setting, const Plan& plan) {
  const Workload& workload = setting.workload;
  const auto other = [](const char* what, const auto& given, const auto& wanted) {
    return absl::InvalidArgumentError(absl::StrCat("plan: ", what, " is ", given, ", the workload's ", wanted,
                                                   "; plan again, or price it for its own workload"));
  };
  if (plan.global_batch != workload.global_batch) return other("global_batch", plan.global_batch, workload.global_batch);
  if (plan.seq_len != workload.seq_len) return other("seq_len", plan.seq_len, workload.seq_len);
  if (plan.dtype != workload.dtype)
    return other("dtype", std::string(DTypeName(plan.dtype)), std::string(DTypeName(workload.dtype)));
  return absl::OkStatus();
}

MemoryByPurpose ClosedFormBytes(const Setting& setting, const PlanView& view, size_t r, int64_t in_flight) {
  const RankView& rank = view.ranks[r];
  RankDuty duty = DutyOf(view, rank);
  duty.in_flight = in_flight;
  return MemoryOf(setting.costs, duty, view.stages[rank.stage].plan->units[rank.unit].microbatches);
}

void CountMemory(const Setting& setting, const PlanView& view, BytesOfRank bytes_of, Evaluation* result) {
  result->does_not_fit.clear();
  result->lacking_bytes = 0;
  std::vector<int64_t> host(setting.cluster.nodes.size(), 0);
  std::vector<Lack> lacks;
  for (size_t r = 0; r < view.ranks.size(); ++r) {
    const RankView& rank = view.ranks[r];
    RankPlan& plan = RankIn(&result->plan, view, r);
    plan.device_model = setting.cluster.kinds[rank.kind].name;
    plan.predicted.most = {};
    plan.predicted.waits = {};
    bytes_of(r, &plan.predicted);
    plan.predicted.peak_bytes = plan.predicted.memory.total();
    host[setting.cluster.devices[rank.device].node] += plan.predicted.memory.host;
    const int64_t usable = setting.UsableBytes(rank.device);
    if (plan.predicted.peak_bytes <= usable) continue;
    result->lacking_bytes = std::max(result->lacking_bytes, plan.predicted.peak_bytes - usable);
    const Lack lack{plan.device.value(), plan.device_model, plan.predicted.peak_bytes, usable, 1};
    const auto alike = std::find_if(lacks.begin(), lacks.end(), [&](const Lack& other) { return lack.SameAs(other); });
    alike == lacks.end() ? lacks.push_back(lack) : void(++alike->devices);
  }
  for (const Lack& lack : lacks) result->does_not_fit.push_back(lack.ToText());
  for (size_t n = 0; n < host.size(); ++n) {
    const ClusterNode& node = setting.cluster.nodes[n];
    if (host[n] <= node.host_memory_bytes) continue;
    result->lacking_bytes = std::max(result->lacking_bytes, host[n] - node.host_memory_bytes);
    const std::string has =
        node.host_memory_bytes > 0 ? absl::StrCat("has ", BytesText(node.host_memory_bytes)) : "gives none (host_memory)";
    result->does_not_fit.push_back(
        absl::StrCat("the host memory of ", node.name.value(), ": offloading needs ", BytesText(host[n]), ", the node ", has));
  }
}

void Predict(const Setting& setting, const PlanView& view, StepGraph graph, Timeline timeline, BytesOfRank bytes_of,
             Evaluation* evaluation) {
  evaluation->timeline = std::move(timeline);
  evaluation->graph = std::move(graph);
  CountMemory(setting, view, bytes_of, evaluation);
  for (size_t r = 0; r < view.ranks.size(); ++r) {
    RankIn(&evaluation->plan, view, r).predicted.busy_seconds = BusySeconds(setting, view, view.ranks[r]);
  }
  PlanPrediction& predicted = evaluation->plan.predicted;
  predicted.step_seconds = ToSeconds(evaluation->timeline.end);
  predicted.as_published = setting.request.keeps_replicas();
  AddRates(setting, view, &predicted);
  AddConfidence(setting, view, RestOfStep(evaluation->graph, evaluation->timeline), &predicted);
  predicted.binding_constraint = BusiestLane(evaluation->graph, evaluation->timeline);
  BindByMemory(setting, view, evaluation);
}

}  // namespace motley::planner
