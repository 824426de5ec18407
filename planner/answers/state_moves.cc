#include "planner/answers/state_moves.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/ownership.h"

namespace motley::planner {
namespace {

// A device, by its place among the sorted names, holds elements [begin, end) of a unit of the model.
struct Holding {
  size_t device = 0;
  int64_t begin = 0, end = 0;
};
using Holdings = std::vector<std::vector<Holding>>;  // by unit of the model

// The devices of both plans, sorted, and the node of each.
struct Names {
  std::vector<DeviceId> devices;
  std::vector<NodeName> nodes;

  Names(const Plan& a, const Plan& b) {
    for (const Plan* plan : {&a, &b}) {
      ForEachRank(*plan, [this](const RankPlan& rank) { devices.push_back(rank.device); });
    }
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    for (const DeviceId& device : devices) nodes.push_back(NodeOf(device));
  }
  size_t Index(const DeviceId& device) const {
    return static_cast<size_t>(std::lower_bound(devices.begin(), devices.end(), device) - devices.begin());
  }
};

int64_t StateBytesPerElement(DType dtype) { return dtype == DType::kFloat64 ? 24 : 12; }

constexpr int64_t kMostLayers = 100'000;

// What the ranges below rely on, where no model is at hand for Validate.
absl::Status CheckShape(const Plan& plan) {
  const auto broken = [](const char* what) { return absl::InvalidArgumentError(absl::StrCat("plan: ", what)); };
  if (plan.pipelines.empty()) return broken("pipelines: empty");
  for (const PipelinePlan& pipeline : plan.pipelines) {
    if (pipeline.stages.empty()) return broken("stages: empty");
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      const StagePlan& stage = pipeline.stages[s];
      if (stage.ministages.empty() || stage.units.empty()) return broken("a stage without ministages or units");
      for (const LayerRange& range : stage.ministages) {
        if (range.first < 0 || range.last < range.first || range.last >= kMostLayers)
          return broken("ministages that are no ranges of layers");
      }
    }
  }
  return absl::OkStatus();
}

int64_t LastLayer(const Plan& plan) {
  int64_t last = 0;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      for (const LayerRange& range : stage.ministages) last = std::max(last, range.last);
    }
  }
  return last;
}

// Elements by block, as far as the plan's ownership tells; 0 = not told.
void AddSizes(const Plan& plan, std::vector<int64_t>* sizes) {
  for (int32_t block = 0; plan.ownership && block < plan.ownership->num_blocks(); ++block) {
    if (static_cast<size_t>(block) < sizes->size()) (*sizes)[static_cast<size_t>(block)] = plan.ownership->NumElements(block);
  }
}

absl::Status CheckOwnership(const Plan& plan, const std::vector<int64_t>& sizes) {
  if (!plan.ownership) return absl::OkStatus();
  int32_t world = 0;
  ForEachRank(plan, [&world](const RankPlan&) { ++world; });
  return Validate(*plan.ownership, sizes, world);
}

Holdings HoldingsOf(const Plan& plan, const std::vector<int64_t>& sizes, const ModelShape* model, const Names& names) {
  std::vector<size_t> devices;  // by rank
  ForEachRank(plan, [&](const RankPlan& rank) { devices.push_back(names.Index(rank.device)); });
  Holdings holdings;
  const Ownership ownership = model != nullptr ? OwnershipOf(plan, *model) : OwnershipOf(plan, sizes);
  for (int32_t block = 0; block < ownership.num_blocks(); ++block) {
    holdings.emplace_back();
    for (const OwnedRange& range : ownership.Of(block)) {
      holdings.back().push_back({devices[range.rank], range.begin, range.end});
    }
  }
  return holdings;
}

class MoveFinder {
 public:
  MoveFinder(const Names& names, int64_t bytes_per_element)
      : names_(names), bytes_per_element_(bytes_per_element), sent_(names.devices.size(), 0) {}

  // Everything that `wanted`'s device does not hold before.
  void Bring(const Holding& wanted, const std::vector<Holding>& before) {
    for (int64_t next = wanted.begin; next < wanted.end;) {
      const Holding* source = FindSource(wanted.device, next, before);
      if (source == nullptr) {  // nobody holds it: on to where somebody does
        int64_t begin = wanted.end;
        for (const Holding& h : before) {
          if (h.begin > next) begin = std::min(begin, h.begin);
        }
        next = begin;
        continue;
      }
      int64_t end = std::min(wanted.end, source->end);
      if (source->device != wanted.device) {
        // Up to where the receiver itself goes on.
        for (const Holding& h : before) {
          if (h.device == wanted.device && h.begin > next) end = std::min(end, h.begin);
        }
        const int64_t bytes = (end - next) * bytes_per_element_;
        moves_[{source->device, wanted.device}] += bytes;
        sent_[source->device] += bytes;
      }
      next = end;
    }
  }

  std::vector<StateMove> Moves() const {
    std::vector<StateMove> moves;
    for (const auto& [pair, bytes] : moves_) moves.push_back({names_.devices[pair.first], names_.devices[pair.second], bytes});
    return moves;
  }

 private:
  const Holding* FindSource(size_t to, int64_t element, const std::vector<Holding>& before) const {
    const auto rank = [&](const Holding& h) {
      return std::tuple(names_.nodes[h.device] != names_.nodes[to], sent_[h.device], h.device);
    };
    const Holding* best = nullptr;
    for (const Holding& h : before) {
      if (element < h.begin || element >= h.end) continue;
      if (h.device == to) return &h;
      if (best == nullptr || rank(h) < rank(*best)) best = &h;
    }
    return best;
  }

  const Names& names_;
  const int64_t bytes_per_element_;
  std::map<std::pair<size_t, size_t>, int64_t> moves_;
  std::vector<int64_t> sent_;
};

}  // namespace

absl::StatusOr<std::vector<StateMove>> FindStateMoves(const Plan& before, const Plan& after, const ModelShape* model) {
  MOTLEY_RETURN_IF_ERROR(CheckShape(before));
  MOTLEY_RETURN_IF_ERROR(CheckShape(after));
  if (LastLayer(before) != LastLayer(after)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plans are of different models: ", LastLayer(before) + 1, " and ", LastLayer(after) + 1, " layers"));
  }
  std::vector<int64_t> sizes(static_cast<size_t>(LastLayer(before) + 3), 0);
  if (model != nullptr) {
    const std::vector<UnitSpec> layout = ParameterLayout(*model);
    if (layout.size() != sizes.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model has ", layout.size() - 2, " layers, the plans ", sizes.size() - 2));
    }
    for (size_t u = 0; u < sizes.size(); ++u) sizes[u] = layout[u].num_elements;
  }
  AddSizes(before, &sizes);
  AddSizes(after, &sizes);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) {
    return absl::InvalidArgumentError(
        "neither plan says who owns which elements, so the sizes of its layers are not known; give the model");
  }
  MOTLEY_RETURN_IF_ERROR(CheckOwnership(before, sizes));
  MOTLEY_RETURN_IF_ERROR(CheckOwnership(after, sizes));
  const Names names(before, after);
  MoveFinder finder(names, StateBytesPerElement(after.dtype));
  const Holdings from = HoldingsOf(before, sizes, model, names), to = HoldingsOf(after, sizes, model, names);
  for (size_t u = 0; u < sizes.size(); ++u) {
    for (const Holding& wanted : to[u]) finder.Bring(wanted, from[u]);
  }
  return finder.Moves();
}

}  // namespace motley::planner
