#include "planner/plan/unit_slices.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/op_set.h"
#include "planner/util/work_count.h"

namespace motley::planner {
namespace {

std::vector<double> SharesOf(const UnitPlan& unit) {
  std::vector<double> shares;
  for (const RankPlan& rank : unit.ranks) shares.push_back(rank.tp_share);
  return shares;
}

std::string StageName(size_t p, size_t s) { return absl::StrCat("plan: pipelines[", p, "].stages[", s, "]"); }

absl::Status At(size_t p, size_t s, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(StageName(p, s), ": ", status.message()));
}

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// The ranks of a unit would have to agree on it: its result needs a sum over all of them, which is kept instead.
absl::Status CheckRecompute(const StagePlan& stage) {
  for (const UnitPlan& unit : stage.units) {
    for (const RankPlan& rank : unit.ranks) {
      if (unit.ranks.size() == 1 || rank.recompute.all()) continue;
      for (const Op op : {Op::kAttnOut, Op::kResidual1}) {
        if (!rank.recompute.Has(op)) continue;
        return Invalid(rank.device.value(), ": recompute '", planner::ToText(rank.recompute), "' given; ",
                       std::string(OpName(op)),
                       " ends in a sum over the unit's ranks, which is kept, so recomputing it frees nothing; leave it out");
      }
    }
  }
  return absl::OkStatus();
}

// Every owned range is of the owner's own slice.
absl::Status CheckOwnership(const Plan& plan, const ModelShape& model) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<ModelSlice> slices, SlicesOfRanks(model, plan));
  std::vector<const RankPlan*> ranks;
  ForEachRank(plan, [&](const RankPlan& rank) { ranks.push_back(&rank); });
  const std::vector<UnitSpec> layout = ParameterLayout(model);
  const OwnedRanges* checked = nullptr;  // of the block before
  for (size_t block = 0; block < layout.size(); ++block) {
    const OwnedRanges& owned = plan.ownership->Of(static_cast<int32_t>(block));
    if (std::exchange(checked, &owned) == &owned && layout[block].kind == layout[block - 1].kind) continue;
    for (const OwnedRange& range : owned) {
      int64_t has = 0;
      for (const SliceRun& run : RunsOf(layout[block], slices[range.rank])) {
        has += std::max<int64_t>(0, std::min(range.end, run.in_unit + run.elements) - std::max(range.begin, run.in_unit));
      }
      if (has == range.size()) continue;
      return absl::InvalidArgumentError(absl::StrCat("plan: ownership: ", ranks[range.rank]->device.value(), " owns elements ",
                                                     range.begin, " to ", range.end, " of block ", block, ", of which ",
                                                     range.size() - has, " are not in its tensor-parallel slice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsTensorParallel(const StagePlan& stage) {
  return std::any_of(stage.units.begin(), stage.units.end(), [](const UnitPlan& unit) { return unit.ranks.size() > 1; });
}

absl::StatusOr<std::vector<ModelSlice>> SlicesOfStage(const ModelShape& model, const StagePlan& stage) {
  std::vector<ModelSlice> slices;
  for (const UnitPlan& unit : stage.units) {
    const absl::StatusOr<std::vector<ModelSlice>> own = ::motley::SlicesOf(model, SharesOf(unit));
    if (!own.ok()) return Invalid("the unit of ", unit.ranks[0].device.value(), ": ", own.status().message());
    slices.insert(slices.end(), own->begin(), own->end());
  }
  return slices;
}

absl::StatusOr<std::vector<ModelSlice>> SlicesOfRanks(const ModelShape& model, const Plan& plan) {
  ++WorkOfThread().slices;
  std::vector<ModelSlice> slices;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const StagePlan& stage = plan.pipelines[p].stages[s];
      const absl::StatusOr<std::vector<ModelSlice>> own = SlicesOfStage(model, stage);
      if (!own.ok()) return At(p, s, own.status());
      slices.insert(slices.end(), own->begin(), own->end());
    }
  }
  return slices;
}

void SnapShares(const ModelShape& model, Plan* plan) {
  ForEachUnit(*plan, [&model](UnitPlan& unit) {
    const absl::StatusOr<std::vector<ModelSlice>> slices = ::motley::SlicesOf(model, SharesOf(unit));
    for (size_t r = 0; slices.ok() && r < slices->size(); ++r) {
      const auto& [first, end, parts] = (*slices)[r];
      unit.ranks[r].tp_share = static_cast<double>(end - first) / static_cast<double>(parts);
    }
  });
}

SliceElements ElementsOf(const ModelShape& model, const ModelSlice& slice) {
  SliceElements elements;
  ModelShape of_one_layer = slice.whole() ? model : ShapeOf(model, slice);  // all have as many
  of_one_layer.num_layers = 1;
  for (const UnitSpec& unit : ParameterLayout(of_one_layer)) {
    const int64_t units = unit.kind == UnitKind::kLayer ? model.num_layers : 1;
    elements.all.insert(elements.all.end(), static_cast<size_t>(units), unit.num_elements);
    elements.divided.insert(elements.divided.end(), static_cast<size_t>(units), unit.divided_elements);
  }
  return elements;
}

absl::Status CheckTensorParallel(const Plan& plan, const ModelShape& model) {
  bool any = false;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const StagePlan& stage = plan.pipelines[p].stages[s];
      if (!IsTensorParallel(stage)) continue;
      any = true;
      if (const absl::Status status = SlicesOfStage(model, stage).status(); !status.ok()) return At(p, s, status);
      if (const absl::Status status = CheckRecompute(stage); !status.ok()) return At(p, s, status);
    }
  }
  if (!any) return absl::OkStatus();
  return plan.ownership ? CheckOwnership(plan, model) : absl::OkStatus();
}

}  // namespace motley::planner
