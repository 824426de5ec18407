#include "planner/plan.h"

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/parameters.h"
#include "common/status_macros.h"

namespace motley::planner {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("plan: ", parts...));
}

std::string RankName(size_t rank, const UnitPlan& unit) {
  return absl::StrCat("rank ", rank, " (", unit.ranks[0].device.value(), ")");
}

// What the nesting can say and the engine cannot run yet.
absl::Status CheckLimits(const Plan& plan) {
  if (plan.schema_version < 1 || plan.schema_version > kPlanSchemaVersion) return Invalid("schema_version ", plan.schema_version, " is not known, this build reads 1 and 2");
  if (plan.pipelines.size() != 1) return Invalid("pipelines: ", plan.pipelines.size(), " given, the engine runs exactly 1");
  const PipelinePlan& pipeline = plan.pipelines[0];
  if (pipeline.stages.size() != 1)
    return Invalid("pipelines[0].stages: ", pipeline.stages.size(), " given, the engine runs exactly 1");
  const StagePlan& stage = pipeline.stages[0];
  if (stage.units.empty()) return Invalid("pipelines[0].stages[0].units: empty, at least one device must take part");
  for (size_t u = 0; u < stage.units.size(); ++u) {
    if (stage.units[u].ranks.size() == 1) continue;
    return Invalid("pipelines[0].stages[0].units[", u, "].ranks: ", stage.units[u].ranks.size(),
                   " given, the engine runs units of exactly 1 rank (no tensor parallelism)");
  }
  return absl::OkStatus();
}

absl::Status CheckMinistages(const StagePlan& stage, const ModelShape& model) {
  int64_t next = 0;
  for (const LayerRange& range : stage.ministages) {
    if (range.first != next || range.last < range.first) {
      return Invalid("ministages: layers ", range.first, "-", range.last, " given where layer ", next, " comes next");
    }
    next = range.last + 1;
  }
  if (next != model.num_layers)
    return Invalid("ministages end before layer ", next, ", the model has ", model.num_layers, " layers");
  return absl::OkStatus();
}

absl::Status CheckRanks(const Plan& plan, const StagePlan& stage) {
  std::set<DeviceId> seen;
  int64_t batch = 0;
  double shares = 0;
  for (size_t r = 0; r < stage.units.size(); ++r) {
    const UnitPlan& unit = stage.units[r];
    const RankPlan& rank = unit.ranks[0];
    if (rank.device.empty()) return Invalid("rank ", r, ": device is missing");
    const std::string name = RankName(r, unit);
    if (!seen.insert(rank.device).second) return Invalid(name, ": the device is there twice");
    if (rank.recompute != "none" && rank.recompute != "full") {
      return Invalid(name, ": recompute '", rank.recompute, "' is not known; use none or full");
    }
    if (!(rank.shard_ratio >= 0 && rank.shard_ratio <= 1))
      return Invalid(name, ": shard_ratio must be in 0..1, got ", rank.shard_ratio);
    for (const int64_t m : unit.microbatches) {
      if (m < 1) return Invalid(name, ": microbatches must be at least 1, got ", m);
    }
    batch += unit.batch();
    shares += rank.shard_ratio;
  }
  for (const UnusedDevice& unused : plan.unused) {
    if (!seen.insert(unused.device).second) return Invalid("unused: ", unused.device.value(), " is there twice");
  }
  if (plan.global_batch < 1) return Invalid("global_batch must be at least 1, got ", plan.global_batch);
  if (batch != plan.global_batch)
    return Invalid("the ranks' microbatches add up to ", batch, ", the global batch is ", plan.global_batch);
  if (std::abs(shares - 1) > 1e-3) return Invalid("shard_ratio adds up to ", shares, " over the ranks, it must be 1");
  return absl::OkStatus();
}

absl::Status CheckPlacement(const StagePlan& stage, const ModelShape& model) {
  const std::vector<UnitSpec> layout = ParameterLayout(model);
  if (stage.placement.size() != layout.size()) {
    return Invalid("placement: ", stage.placement.size(), " units given, the model has ", layout.size(),
                   " (embedding, layers, head)");
  }
  std::vector<int64_t> owned(stage.units.size(), 0);
  int64_t total = 0;
  for (size_t u = 0; u < layout.size(); ++u) {
    const std::vector<int64_t>& bounds = stage.placement[u].bounds;
    if (bounds.size() != stage.units.size() + 1) {
      return Invalid("placement[", u, "]: ", bounds.size(), " bounds given, ", stage.units.size(), " ranks need ",
                     stage.units.size() + 1);
    }
    if (bounds.front() != 0 || bounds.back() != layout[u].num_elements) {
      return Invalid("placement[", u, "]: bounds must go from 0 to ", layout[u].num_elements, ", got ", bounds.front(), " to ",
                     bounds.back());
    }
    for (size_t r = 0; r + 1 < bounds.size(); ++r) {
      if (bounds[r + 1] < bounds[r]) return Invalid("placement[", u, "]: bounds fall at ", RankName(r, stage.units[r]));
      owned[r] += bounds[r + 1] - bounds[r];
    }
    total += layout[u].num_elements;
  }
  for (size_t r = 0; r < owned.size(); ++r) {
    const double ratio = static_cast<double>(owned[r]) / static_cast<double>(total);
    const double rounding = static_cast<double>(layout.size()) / static_cast<double>(total);
    if (std::abs(ratio - stage.units[r].ranks[0].shard_ratio) > 1e-3 + rounding) {
      return Invalid(RankName(r, stage.units[r]), ": shard_ratio is ", stage.units[r].ranks[0].shard_ratio,
                     " but the placement gives it ", ratio);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const Plan& plan, const ModelShape& model) {
  MOTLEY_RETURN_IF_ERROR(CheckLimits(plan));
  const StagePlan& stage = plan.pipelines[0].stages[0];
  if (plan.seq_len < 1 || plan.seq_len > model.max_positions) {
    return Invalid("seq_len must be in 1..", model.max_positions, " (the model's positions), got ", plan.seq_len);
  }
  MOTLEY_RETURN_IF_ERROR(CheckMinistages(stage, model));
  MOTLEY_RETURN_IF_ERROR(CheckRanks(plan, stage));
  return CheckPlacement(stage, model);
}

absl::Status ValidateForEngine(const Plan& plan, const ModelShape& model) { return Validate(plan, model); }

}  // namespace motley::planner
