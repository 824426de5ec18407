#include "planner/strategies/hexiscale/hexiscale_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "planner/groups/groupings.h"
#include "planner/setting/least_lack.h"
#include "planner/strategies/hexiscale/hexiscale_descent.h"
#include "planner/strategies/proportional_layers.h"
#include "planner/util/at.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr size_t kImproved = 3;  // layouts that local moves start from
constexpr int kMovesLimit = 60;  // layouts priced from one start, up to kFewDevices devices; fewer beyond, for they cost more
constexpr int kFewDevices = 64;
// Descents look at all neighbours of a layout, which grow with the square of its stages: beyond some devices a round would take
// longer than the search before it.
constexpr int kDescentDevices = 16;
constexpr int kDescentLimit = 1000;       // layouts that each of them prices
constexpr size_t kStarts = 24;            // partitions that they start from, up to kAllPartitionsDevices devices
constexpr size_t kFewStarts = 6;          // beyond
constexpr int kAllPartitionsDevices = 6;  // up to which PartitionIntoPipelines gives all partitions

std::vector<int> DevicesOf(const HexiscalePipeline& pipeline) {
  std::vector<int> devices;
  for (const HexiscaleStage& stage : pipeline.stages) devices.insert(devices.end(), stage.devices.begin(), stage.devices.end());
  std::sort(devices.begin(), devices.end());
  return devices;
}

}  // namespace

absl::StatusOr<HexiscaleSearch> HexiscaleSearch::Create(const Setting& setting, HexiscaleProblem* problem,
                                                        const HexiscaleLimits& limits) {
  return HexiscaleSearch(setting, problem, setting.pinned_stage, limits);
}

HexiscaleSearch::HexiscaleSearch(const Setting& setting, HexiscaleProblem* problem, std::vector<int> pinned,
                                 const HexiscaleLimits& limits)
    : setting_(setting),
      problem_(problem),
      limits_(limits),
      speeds_(SpeedsOf(setting)),
      designer_(problem, RatesOf(setting), std::move(pinned), limits) {
  if (setting.request.deadline.has_value()) deadline_ = absl::Now() + *setting.request.deadline;
}

bool HexiscaleSearch::Stop() {
  if (++nodes_ > setting_.request.budget_nodes) return true;
  if (setting_.request.deadline.has_value() && absl::Now() > deadline_) stopped_by_clock_ = true;
  return stopped_by_clock_;
}

absl::StatusOr<std::vector<PricedLayout>> HexiscaleSearch::Run(const PipelinePartitions& partitions, size_t most) {
  most_ = most;
  // The paper's memory model is plain data parallelism. Its evaluation in Zorse's says ZeRO-2, which moves the same bytes and
  // needs less memory.
  const int plain = setting_.request.keeps_replicas() ? 0 : 1;
  std::vector<int> zero_stages = limits_.plain_replicas ? std::vector<int>{plain, 2} : std::vector<int>{2};
  const bool asked = setting_.request.zero_stage.has_value() && *setting_.request.zero_stage <= 2;
  if (asked) zero_stages = {*setting_.request.zero_stage};
  std::vector<const Parts*> all;
  for (const Parts& parts : partitions.by_metis) all.push_back(&parts);
  for (const Parts& parts : partitions.from_tree) {
    if (!limits_.metis_alone) all.push_back(&parts);
  }
  for (int zero_stage : zero_stages) {
    if (!best_.empty()) break;  // the next where none fits
    for (const Parts* parts : all) {
      if (parts->size() == 1 && zero_stage != zero_stages[0]) continue;  // nothing to shard between
      if (Stop()) break;
      TryPartition(*parts, zero_stage);
    }
  }
  if (!limits_.no_moves) {
    std::vector<PricedLayout> starts(best_.begin(),
                                     best_.begin() + static_cast<std::ptrdiff_t>(std::min(kImproved, best_.size())));
    for (PricedLayout& start : starts) Improve(std::move(start));
    Descend();
  }
  if (best_.empty()) return DoesNotFit();
  return best_;
}

void HexiscaleSearch::TryPartition(const Parts& parts, int zero_stage) {
  PricedLayout layout = Build(parts, zero_stage);
  const bool descends = !limits_.no_moves && setting_.num_devices() <= kDescentDevices;
  if (descends) starts_.push_back({layout.seconds, parts, layout.layout});
  if (std::isfinite(layout.seconds)) Remember(std::move(layout));
}

void HexiscaleSearch::Remember(PricedLayout layout) {
  if (best_.size() == most_ && layout.seconds >= best_.back().seconds) return;
  const auto at = std::upper_bound(best_.begin(), best_.end(), layout.seconds,
                                   [](double seconds, const PricedLayout& other) { return seconds < other.seconds; });
  // Layouts of equal price are nearly always the same with equal devices exchanged.
  if (at != best_.begin() && (at - 1)->seconds == layout.seconds) return;
  best_.insert(at, std::move(layout));
  if (best_.size() > most_) best_.pop_back();
}

PricedLayout HexiscaleSearch::Build(const Parts& parts, int zero_stage) {
  PricedLayout result{kInfinity, {}};
  if (static_cast<int64_t>(parts.size()) > setting_.workload.global_batch) return result;
  std::vector<double> weight;
  double sum = 0;
  for (const std::vector<int>& devices : parts) {
    double speed = 0;
    for (int device : devices) speed += speeds_[At(device)];
    weight.push_back(speed);
    sum += speed;
  }
  // Designed for a batch by peak speed, then once more for the batch that the first design earned.
  for (int round = 0; round < 2; ++round) {
    HexiscaleLayout layout;
    layout.zero_stage = zero_stage;
    for (size_t i = 0; i < parts.size(); ++i) {
      PipelineQuestion question{parts[i], 0, static_cast<int>(parts.size()), zero_stage};
      question.batch = std::max<int64_t>(1, std::llround(static_cast<double>(setting_.workload.global_batch) * weight[i] / sum));
      HexiscalePipeline pipeline = designer_.Design(question);
      if (pipeline.stages.empty()) return result;
      layout.pipelines.push_back(std::move(pipeline));
    }
    if (!DistributeBatches(&layout)) return result;
    const double seconds = problem_->StepSeconds(layout);
    bool again = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      const double batch = static_cast<double>(layout.pipelines[i].batch);
      again = again ||
              std::abs(batch / static_cast<double>(setting_.workload.global_batch) - weight[i] / sum) > 0.05 * weight[i] / sum;
    }
    if (seconds < result.seconds) result = {seconds, layout};
    if (!again || parts.size() == 1) break;
    sum = 0;
    for (size_t i = 0; i < parts.size(); ++i) sum += weight[i] = static_cast<double>(layout.pipelines[i].batch);
  }
  return result;
}

// Exact for equation 9 with the layers given: a bound on all pipelines' times, then what is too much from those that end last.
bool HexiscaleSearch::DistributeBatches(HexiscaleLayout* layout) {
  const int64_t total = setting_.workload.global_batch;
  const size_t n = layout->pipelines.size();
  std::vector<double> fill(n), slowest(n);
  double low = 0, high = 0;
  for (size_t i = 0; i < n; ++i) {
    HexiscalePipeline& pipeline = layout->pipelines[i];
    pipeline.batch = pipeline.microbatch;
    fill[i] = problem_->PipelineTime(pipeline);
    pipeline.batch = 2 * pipeline.microbatch;
    slowest[i] = problem_->PipelineTime(pipeline) - fill[i];
    const double all = fill[i] + slowest[i] * static_cast<double>(total / pipeline.microbatch);
    low = std::max(low, fill[i]);  // every pipeline computes at least one microbatch
    high = std::max(high, all);
  }
  const auto batch_within = [&](size_t i, double bound) {
    const int64_t m = layout->pipelines[i].microbatch;
    const double count =
        slowest[i] > 0 ? std::floor((bound - fill[i]) / slowest[i] * (1 + 1e-12)) + 1 : static_cast<double>(total);
    return m * std::clamp<int64_t>(static_cast<int64_t>(std::min(count, 1e15)), 1, (total + m - 1) / m);
  };
  const auto sum_within = [&](double bound) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; ++i) sum += batch_within(i, bound);
    return sum;
  };
  if (sum_within(low) < total) {
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      if (sum_within(middle) >= total)
        high = middle;
      else
        low = middle;
    }
  } else {
    high = low;
  }
  int64_t extra = -total;
  for (size_t i = 0; i < n; ++i) extra += layout->pipelines[i].batch = batch_within(i, high);
  while (extra > 0) {
    size_t last = n;
    double ends = -1;
    for (size_t i = 0; i < n; ++i) {
      const HexiscalePipeline& pipeline = layout->pipelines[i];
      const double t = fill[i] + slowest[i] * static_cast<double>(pipeline.microbatches() - 1);
      if (pipeline.batch > 1 && t > ends) ends = t, last = i;
    }
    if (last == n) return false;
    HexiscalePipeline& pipeline = layout->pipelines[last];
    const int64_t part = pipeline.batch % pipeline.microbatch == 0 ? pipeline.microbatch : pipeline.batch % pipeline.microbatch;
    const int64_t cut = std::min({extra, part, pipeline.batch - 1});
    pipeline.batch -= cut;
    extra -= cut;
  }
  for (HexiscalePipeline& pipeline : layout->pipelines) designer_.Refit(&pipeline, static_cast<int>(n), layout->zero_stage);
  return true;
}

// Partitions one move away: runs of stages from any pipeline to the slowest, stages exchanged with it, it divided or joined with
// another.
std::vector<Parts> HexiscaleSearch::Neighbours(const HexiscaleLayout& layout) {
  size_t slowest = 0;
  std::vector<double> seconds;
  for (const HexiscalePipeline& pipeline : layout.pipelines) seconds.push_back(problem_->PipelineTime(pipeline));
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] > seconds[slowest]) slowest = i;
  }
  Parts parts;
  for (const HexiscalePipeline& pipeline : layout.pipelines) parts.push_back(DevicesOf(pipeline));
  std::set<Parts> result;
  const auto moved = [&](size_t from, size_t to, const std::vector<int>& give, const std::vector<int>& take) {
    Parts next = parts;
    const auto shift = [&](size_t a, size_t b, const std::vector<int>& devices) {
      for (int device : devices) {
        next[a].erase(std::find(next[a].begin(), next[a].end(), device));
        next[b].push_back(device);
      }
    };
    shift(from, to, give);
    shift(to, from, take);
    next.erase(std::remove_if(next.begin(), next.end(), [](const auto& part) { return part.empty(); }), next.end());
    for (std::vector<int>& part : next) std::sort(part.begin(), part.end());
    std::sort(next.begin(), next.end());
    if (next != parts) result.insert(std::move(next));
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == slowest) continue;
    moved(i, slowest, parts[i], {});
    for (const HexiscaleStage& stage : layout.pipelines[i].stages) {
      moved(i, slowest, stage.devices, {});
      for (const HexiscaleStage& own : layout.pipelines[slowest].stages) {
        if (setting_.KindOf(stage.devices[0]) != setting_.KindOf(own.devices[0])) moved(i, slowest, stage.devices, own.devices);
      }
    }
    for (const HexiscaleStage& own : layout.pipelines[slowest].stages) moved(slowest, i, own.devices, {});
  }
  for (const HexiscalePipeline& pipeline : layout.pipelines) {  // divided behind a stage
    std::vector<int> front;
    for (size_t j = 0; j + 1 < pipeline.stages.size(); ++j) {
      front.insert(front.end(), pipeline.stages[j].devices.begin(), pipeline.stages[j].devices.end());
      Parts next = parts;
      std::vector<int>& whole = next[&pipeline - layout.pipelines.data()];
      for (int device : front) whole.erase(std::find(whole.begin(), whole.end(), device));
      next.push_back(front);
      std::sort(next.back().begin(), next.back().end());
      std::sort(next.begin(), next.end());
      result.insert(std::move(next));
    }
  }
  return {result.begin(), result.end()};
}

void HexiscaleSearch::Improve(PricedLayout start) {
  const int n = setting_.num_devices();
  int left = n <= kFewDevices ? kMovesLimit : kMovesLimit * kFewDevices / n;
  bool better = true;
  while (better) {
    better = false;
    for (const Parts& parts : Neighbours(start.layout)) {
      if (left-- <= 0 || Stop()) return;
      PricedLayout layout = Build(parts, start.layout.zero_stage);
      if (layout.seconds >= start.seconds) continue;
      start = layout;
      Remember(std::move(layout));
      better = true;
      break;
    }
  }
}

// From the layouts of the best partitions, and from their least and largest stages: between them lie degrees that differ in a
// node.
void HexiscaleSearch::Descend() {
  std::stable_sort(starts_.begin(), starts_.end(), [](const Start& a, const Start& b) { return a.seconds < b.seconds; });
  const size_t most = setting_.num_devices() <= kAllPartitionsDevices ? kStarts : kFewStarts;
  for (size_t i = 0; i < std::min(most, starts_.size()); ++i) {
    const int zero_stage = setting_.request.zero_stage.value_or(2);
    std::vector<HexiscaleLayout> layouts = {starts_[i].layout};
    for (const bool whole : {false, true}) layouts.push_back(ByPart(starts_[i].parts, std::min(zero_stage, 2), whole));
    for (HexiscaleLayout& layout : layouts) {
      if (layout.pipelines.empty()) continue;  // did not fit; more stages than layers
      int left = kDescentLimit;
      HexiscaleDescent descent(problem_, &designer_, setting_.pinned_stage, [&] { return left-- > 0 && !Stop(); });
      const double seconds = descent.Run(&layout);
      if (std::isfinite(seconds)) Remember({seconds, std::move(layout)});
    }
  }
}

// Stages of one device, or (`whole`) of all of a node's devices of a kind; layers and batches by speed. Without pipelines where
// there are too few layers or samples.
HexiscaleLayout HexiscaleSearch::ByPart(const Parts& parts, int zero_stage, bool whole) const {
  HexiscaleLayout layout;
  layout.zero_stage = zero_stage;
  std::vector<double> sums;
  for (const std::vector<int>& devices : parts) {
    std::vector<double> speeds;
    HexiscalePipeline& pipeline = layout.pipelines.emplace_back();
    for (const int device : devices) {
      const StageShape own = problem_->ShapeOf({&device, 1});
      const auto like = std::find_if(pipeline.stages.begin(), pipeline.stages.end(), [&](const HexiscaleStage& stage) {
        const StageShape its = problem_->ShapeOf(stage.devices);
        return whole && its.node == own.node && its.kind == own.kind;
      });
      const auto at = static_cast<size_t>(like - pipeline.stages.begin());
      if (like == pipeline.stages.end()) {
        pipeline.stages.emplace_back();
        speeds.push_back(0);
      }
      pipeline.stages[at].devices.push_back(device);
      speeds[at] += speeds_[At(device)];
    }
    const std::vector<int64_t> layers = ProportionalLayers(setting_.workload.model.num_layers, speeds);
    if (layers.empty()) return {};
    for (size_t j = 0; j < layers.size(); ++j) pipeline.stages[j].layers = layers[j];
    sums.push_back(std::accumulate(speeds.begin(), speeds.end(), 0.0));
  }
  const std::vector<int64_t> batches = ProportionalLayers(setting_.workload.global_batch, sums);
  if (batches.empty()) return {};
  for (size_t i = 0; i < batches.size(); ++i) layout.pipelines[i].batch = batches[i];
  return layout;
}

absl::Status HexiscaleSearch::DoesNotFit() const {
  const int device = designer_.lacking_device();
  if (device < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("hexiscale: no layout found (", nodes_,
                     " tried) that puts the pinned devices into their stages, with at most as many pipelines as ",
                     "samples and as many stages as layers; pin fewer devices or raise the budget"));
  }
  const ClusterDevice& of = setting_.cluster.devices[At(device)];
  return OneDeviceLacks(setting_, designer_.least_missing_bytes(),
                        absl::StrCat("hexiscale: ", of.id.value(), " (", setting_.cluster.kinds[At(of.kind)].name, ")"),
                        " in the layout that comes nearest");
}

}  // namespace motley::planner
