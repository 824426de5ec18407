// hexiscale (arXiv 2409.01143): pipelines of different shape side by side, tensor parallelism inside nodes, 1F1B. The search has
// its own objective (hexiscale_problem.h); the best layouts by it are simulated. docs/inside/strategies/hexiscale.md says what is
// published and what is tuned.
#include <cstddef>
#include <utility>
#include <vector>

#include "common/base/in_parallel.h"
#include "common/base/status_macros.h"
#include "planner/published/hexiscale_limits.h"
#include "planner/search/best_plan.h"
#include "planner/setting/blank_plan.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/hexiscale/hexiscale_search.h"

namespace motley::planner {
namespace {

constexpr size_t kEstimated = 32, kSimulated = 5;

UnitPlan ToUnit(const Setting& setting, const HexiscaleStage& stage, const HexiscalePipeline& pipeline) {
  UnitPlan unit;
  const double share = 1.0 / static_cast<double>(stage.devices.size());
  for (int i : stage.devices) {
    RankPlan rank = RankOn(setting, i);
    rank.recompute = stage.keep ? OpSet::None() : OpSet::All();
    rank.shard_ratio = share;
    rank.tp_share = share;
    unit.ranks.push_back(std::move(rank));
  }
  unit.microbatches.assign(static_cast<size_t>(pipeline.batch / pipeline.microbatch), pipeline.microbatch);
  if (pipeline.batch % pipeline.microbatch > 0) unit.microbatches.push_back(pipeline.batch % pipeline.microbatch);
  return unit;
}

Plan ToPlan(const Setting& setting, const HexiscaleLayout& layout) {
  Plan plan = BlankPlan(setting, "hexiscale", ScheduleFamily::k1F1B);
  plan.pipelines_zero_stage = layout.pipelines.size() > 1 ? layout.zero_stage : 0;
  for (const HexiscalePipeline& pipeline : layout.pipelines) {
    PipelinePlan out;
    int64_t next = 0;
    for (const HexiscaleStage& stage : pipeline.stages) {
      StagePlan to;
      to.zero_stage = 0;
      to.ministages = {{next, next + stage.layers - 1}};
      to.units.push_back(ToUnit(setting, stage, pipeline));
      out.stages.push_back(std::move(to));
      next += stage.layers;
    }
    plan.pipelines.push_back(std::move(out));
  }
  return plan;
}

absl::StatusOr<Plan> Best(const Setting& setting, const PipelinePartitions& partitions, const HexiscaleLimits& limits) {
  HexiscaleProblem problem(setting, /*shared_links=*/!limits.links_alone);
  MOTLEY_ASSIGN_OR_RETURN(HexiscaleSearch search, HexiscaleSearch::Create(setting, &problem, limits));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<PricedLayout> layouts, search.Run(partitions, kEstimated));
  std::vector<Plan> plans;
  for (const PricedLayout& layout : layouts) plans.push_back(ToPlan(setting, layout.layout));
  MOTLEY_ASSIGN_OR_RETURN(Plan plan, BestPlan(setting, std::move(plans), kSimulated));
  if (search.stopped_by_clock()) plan.predicted.notes.push_back("stopped at the deadline: another run may find another plan");
  return plan;
}

}  // namespace

absl::StatusOr<Plan> PlanHexiscale(const Setting& setting) {
  const PipelinePartitions partitions = PartitionIntoPipelines(setting);
  if (setting.request.fidelity == Fidelity::kPublished) return Best(setting, partitions, PublishedHexiscale());
  // As published everything is recomputed.
  if (setting.request.recompute == RecomputePolicy::kNone) return Best(setting, partitions, {});
  absl::StatusOr<Plan> published, tuned;
  InParallel(2, [&](size_t i) {
    (i == 0 ? tuned : published) = Best(setting, partitions, i == 0 ? HexiscaleLimits() : PublishedHexiscale());
  });
  return FasterPlan(setting, std::move(tuned), std::move(published));
}

}  // namespace motley::planner
