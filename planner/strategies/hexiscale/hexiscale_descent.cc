#include "planner/strategies/hexiscale/hexiscale_descent.h"

#include <algorithm>
#include <cstddef>

#include "planner/strategies/proportional_layers.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr double kBetter = 1 - 1e-9;      // less is rounding
constexpr double kLackingSeconds = 1e12;  // price of a layer that lacks memory: more than any step
constexpr int kPatience = 8;              // steps in a row that bring nothing

template <typename Function>
void ForEachStage(const HexiscaleLayout& layout, Function use) {
  for (size_t i = 0; i < layout.pipelines.size(); ++i) {
    for (size_t j = 0; j < layout.pipelines[i].stages.size(); ++j) use(i, j);
  }
}

// What tells layouts apart.
std::vector<int64_t> Key(const HexiscaleLayout& layout) {
  std::vector<int64_t> key;
  for (const HexiscalePipeline& pipeline : layout.pipelines) {
    for (const HexiscaleStage& stage : pipeline.stages) {
      key.insert(key.end(), stage.devices.begin(), stage.devices.end());
      key.push_back(-stage.layers);
    }
    key.insert(key.end(), {pipeline.microbatch, pipeline.batch, -1});
  }
  return key;
}

}  // namespace

double HexiscaleDescent::Run(HexiscaleLayout* layout) {
  if (!Possible(*layout)) return kInfinity;
  double seconds = Price(layout);
  HexiscaleLayout from = *layout;
  priced_ = {Key(from)};
  refitted_.clear();
  stopped_ = false;
  for (int worse = 0; worse < kPatience && !stopped_; ++worse) {
    round_seconds_ = kInfinity;
    TryLayers(from);
    TryMicrobatches(from);
    TryStages(from);
    TryDevices(from);
    TryDivisions(from);
    TryJoins(from);
    if (round_seconds_ == kInfinity) break;
    if (round_seconds_ < seconds * kBetter) {
      *layout = round_;
      seconds = round_seconds_;
      worse = 0;
    }
    from = std::move(round_);
  }
  return seconds < kLackingSeconds ? seconds : kInfinity;
}

// One layer from any stage of a pipeline to any other; the same in all pipelines that have these stages, so that rings stay.
void HexiscaleDescent::TryLayers(const HexiscaleLayout& from) {
  const auto move = [](size_t j, size_t to, HexiscalePipeline* pipeline) {
    std::vector<HexiscaleStage>& stages = pipeline->stages;
    if (std::max(j, to) >= stages.size() || stages[j].layers < 2) return false;
    --stages[j].layers;
    ++stages[to].layers;
    return true;
  };
  ForEachStage(from, [&](size_t i, size_t j) {
    for (size_t to = 0; to < from.pipelines[i].stages.size(); ++to) {
      HexiscaleLayout one = from, all = from;
      if (to == j || !move(j, to, &one.pipelines[i])) continue;
      for (HexiscalePipeline& pipeline : all.pipelines) move(j, to, &pipeline);
      Try(std::move(one));
      Try(std::move(all));
    }
  });
}

// Of another size, the power of two above the batch included; one from a pipeline to another.
void HexiscaleDescent::TryMicrobatches(const HexiscaleLayout& from) {
  for (size_t i = 0; i < from.pipelines.size(); ++i) {
    const HexiscalePipeline& pipeline = from.pipelines[i];
    for (int64_t m = 1; m < 2 * pipeline.batch; m *= 2) {
      if (m == pipeline.microbatch) continue;
      HexiscaleLayout next = from;
      next.pipelines[i].microbatch = m;
      TryRefitted(std::move(next), i, i);
    }
    for (size_t to = 0; to < from.pipelines.size(); ++to) {
      const int64_t moved = std::min({pipeline.microbatch, from.pipelines[to].microbatch, pipeline.batch - 1});
      if (to == i || moved < 1) continue;
      HexiscaleLayout next = from;
      next.pipelines[i].batch -= moved;
      next.pipelines[to].batch += moved;
      TryRefitted(std::move(next), i, to);
    }
  }
}

// Two stages change places, with their layers where they are in one pipeline; all pipelines turned around, for one alone would
// share other rings.
void HexiscaleDescent::TryStages(const HexiscaleLayout& from) {
  ForEachStage(from, [&](size_t i, size_t j) {
    ForEachStage(from, [&](size_t k, size_t l) {
      if (k < i || (k == i && l <= j)) return;
      HexiscaleLayout next = from;
      HexiscaleStage &a = next.pipelines[i].stages[j], &b = next.pipelines[k].stages[l];
      if (problem_->ShapeOf(a.devices) == problem_->ShapeOf(b.devices) && i != k) return;
      i == k ? std::swap(a, b) : std::swap(a.devices, b.devices);
      TryRefitted(std::move(next), i, k);
    });
  });
  HexiscaleLayout turned = from;
  for (HexiscalePipeline& pipeline : turned.pipelines) std::reverse(pipeline.stages.begin(), pipeline.stages.end());
  if (Possible(turned)) Try(std::move(turned));
}

// The last device of a stage to another stage of its node and kind, or to a stage of its own; the last stage of a pipeline may
// go.
void HexiscaleDescent::TryDevices(const HexiscaleLayout& from) {
  ForEachStage(from, [&](size_t i, size_t j) {
    const int device = from.pipelines[i].stages[j].devices.back();
    HexiscaleLayout less = from;
    HexiscaleStage& stage = less.pipelines[i].stages[j];
    stage.devices.pop_back();
    if (stage.devices.empty()) {
      std::vector<HexiscaleStage>& stages = less.pipelines[i].stages;
      if (stages.size() == 1) return;
      stages[j == 0 ? 1 : j - 1].layers += stage.layers;
      stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(j));
    }
    for (size_t k = 0; k < less.pipelines.size(); ++k) {
      for (size_t l = 0; l < less.pipelines[k].stages.size(); ++l) {
        HexiscaleLayout next = less;
        std::vector<int>& devices = next.pipelines[k].stages[l].devices;
        const StageShape its = problem_->ShapeOf(devices), own = problem_->ShapeOf({&device, 1});
        if (its.node != own.node || its.kind != own.kind) continue;
        devices.insert(std::upper_bound(devices.begin(), devices.end(), device), device);
        TryRefitted(std::move(next), i, k);
      }
      for (size_t l = 0; l <= less.pipelines[k].stages.size(); ++l) {
        HexiscaleLayout next = less;
        std::vector<HexiscaleStage>& stages = next.pipelines[k].stages;
        const auto largest =
            std::max_element(stages.begin(), stages.end(), [](const auto& a, const auto& b) { return a.layers < b.layers; });
        if (largest->layers < 2) continue;
        --largest->layers;
        HexiscaleStage alone;
        alone.devices = {device};
        alone.layers = 1;
        stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(l), std::move(alone));
        TryRefitted(std::move(next), i, k);
      }
    }
  });
}

// A stage in two halves; two neighbours of one node and kind in one.
void HexiscaleDescent::TryDivisions(const HexiscaleLayout& from) {
  ForEachStage(from, [&](size_t i, size_t j) {
    const HexiscaleStage& stage = from.pipelines[i].stages[j];
    if (stage.devices.size() >= 2 && stage.layers >= 2) {
      HexiscaleLayout next = from;
      std::vector<HexiscaleStage>& stages = next.pipelines[i].stages;
      HexiscaleStage second = stage;
      const auto half = static_cast<std::ptrdiff_t>(stage.devices.size() / 2);
      stages[j].devices.resize(stage.devices.size() / 2);
      second.devices.erase(second.devices.begin(), second.devices.begin() + half);
      stages[j].layers = stage.layers / 2;
      second.layers = stage.layers - stage.layers / 2;
      stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(j) + 1, std::move(second));
      TryRefitted(std::move(next), i, i);
    }
    if (j + 1 == from.pipelines[i].stages.size()) return;
    HexiscaleLayout next = from;
    std::vector<HexiscaleStage>& stages = next.pipelines[i].stages;
    const StageShape a = problem_->ShapeOf(stages[j].devices), b = problem_->ShapeOf(stages[j + 1].devices);
    if (a.node != b.node || a.kind != b.kind) return;
    std::vector<int>& devices = stages[j].devices;
    devices.insert(devices.end(), stages[j + 1].devices.begin(), stages[j + 1].devices.end());
    std::sort(devices.begin(), devices.end());
    stages[j].layers += stages[j + 1].layers;
    stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(j) + 1);
    TryRefitted(std::move(next), i, i);
  });
}

// All stages of a pipeline somewhere between those of another, every stage with its part of the layers.
void HexiscaleDescent::TryJoins(const HexiscaleLayout& from) {
  for (size_t i = 0; i < from.pipelines.size(); ++i) {
    for (size_t k = 0; k < from.pipelines.size(); ++k) {
      if (k == i) continue;
      for (size_t at = 0; at <= from.pipelines[i].stages.size(); ++at) {
        HexiscaleLayout next = from;
        HexiscalePipeline& pipeline = next.pipelines[i];
        const std::vector<HexiscaleStage>& added = from.pipelines[k].stages;
        pipeline.stages.insert(pipeline.stages.begin() + static_cast<std::ptrdiff_t>(at), added.begin(), added.end());
        pipeline.batch += from.pipelines[k].batch;
        std::vector<double> weights;
        for (const HexiscaleStage& stage : pipeline.stages) weights.push_back(static_cast<double>(stage.layers));
        const std::vector<int64_t> layers = ProportionalLayers(problem_->setting().workload.model.num_layers, weights);
        if (layers.empty()) continue;  // more stages than layers
        for (size_t j = 0; j < layers.size(); ++j) pipeline.stages[j].layers = layers[j];
        next.pipelines.erase(next.pipelines.begin() + static_cast<std::ptrdiff_t>(k));
        TryRefitted(std::move(next), k < i ? i - 1 : i, k < i ? i - 1 : i);
      }
    }
  }
}

// As it is, and with the layers of the pipelines that changed split anew.
void HexiscaleDescent::TryRefitted(HexiscaleLayout layout, size_t pipeline, size_t other) {
  if (stopped_ || !Possible(layout)) return;
  std::vector<int64_t> key = Key(layout);
  key.insert(key.end(), {static_cast<int64_t>(pipeline), static_cast<int64_t>(other)});
  if (!refitted_.insert(std::move(key)).second) return;  // both were tried
  HexiscaleLayout refitted = layout;
  const int replicas = static_cast<int>(layout.pipelines.size());
  Refit(&refitted.pipelines[pipeline], replicas, layout.zero_stage);
  if (other != pipeline) Refit(&refitted.pipelines[other], replicas, layout.zero_stage);
  Try(std::move(layout));
  Try(std::move(refitted));
}

// What suits a pipeline alone follows from its devices and batch, and pipelines mostly change one or two at a time.
void HexiscaleDescent::Refit(HexiscalePipeline* pipeline, int replicas, int zero_stage) {
  std::vector<int64_t> key = {pipeline->microbatch, pipeline->batch, replicas, zero_stage};
  for (const HexiscaleStage& stage : pipeline->stages) {
    key.insert(key.end(), stage.devices.begin(), stage.devices.end());
    key.push_back(-1);
  }
  const auto [at, is_new] = suitable_.try_emplace(std::move(key));
  if (is_new) {
    HexiscalePipeline fitted = *pipeline;
    if (designer_->Refit(&fitted, replicas, zero_stage)) at->second = std::move(fitted.stages);
  }
  if (!at->second.empty()) pipeline->stages = at->second;
}

void HexiscaleDescent::Try(HexiscaleLayout layout) {
  if (stopped_ || !priced_.insert(Key(layout)).second) return;
  if (!spend_()) {
    stopped_ = true;
    return;
  }
  const double seconds = Price(&layout);
  if (seconds >= round_seconds_) return;
  round_seconds_ = seconds;
  round_ = std::move(layout);
}

double HexiscaleDescent::Price(HexiscaleLayout* layout) const {
  const int64_t lacking = Lacking(layout);
  return problem_->StepSeconds(*layout) + kLackingSeconds * static_cast<double>(lacking);
}

// Degrees that divide the heads within the request's limit; pinned devices in their stages.
bool HexiscaleDescent::Possible(const HexiscaleLayout& layout) const {
  const Setting& setting = problem_->setting();
  bool possible = true;
  ForEachStage(layout, [&](size_t i, size_t j) {
    const std::vector<int>& devices = layout.pipelines[i].stages[j].devices;
    const auto degree = static_cast<int64_t>(devices.size());
    possible &= degree <= setting.request.max_tp && setting.tp_parts() % degree == 0;
    for (const int device : devices) {
      const int stage = pinned_[device];
      possible &= stage < 0 || stage == static_cast<int>(j);
    }
  });
  return possible;
}

// Layers beyond what their stages' memory holds. Where that is left open, activations are kept wherever it fits: it only saves
// time.
int64_t HexiscaleDescent::Lacking(HexiscaleLayout* layout) const {
  int64_t lacking = 0;
  const RecomputePolicy policy = problem_->setting().request.recompute;
  const int replicas = static_cast<int>(layout->pipelines.size());
  for (HexiscalePipeline& pipeline : layout->pipelines) {
    std::vector<StageShape> shapes;
    for (const HexiscaleStage& stage : pipeline.stages) shapes.push_back(problem_->ShapeOf(stage.devices));
    const auto costs = [&](bool keep) {
      return problem_->StageCosts(shapes, pipeline.microbatch, pipeline.microbatches(), std::vector<bool>(shapes.size(), keep),
                                  replicas, layout->zero_stage);
    };
    const std::vector<StageCost> kept = costs(policy != RecomputePolicy::kFull), frugal = costs(policy == RecomputePolicy::kNone);
    for (size_t j = 0; j < shapes.size(); ++j) {
      HexiscaleStage& stage = pipeline.stages[j];
      stage.keep = policy == RecomputePolicy::kNone || (policy == RecomputePolicy::kAuto && stage.layers <= kept[j].most_layers);
      lacking += std::max<int64_t>(0, stage.layers - frugal[j].most_layers);
    }
  }
  return lacking;
}

}  // namespace motley::planner
