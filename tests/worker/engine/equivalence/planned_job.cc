#include "tests/worker/engine/equivalence/planned_job.h"

#include <random>
#include <utility>

#include "common/data/sampling.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/plan_engine_limits.h"
#include "tests/planner/drawn_offload.h"

namespace motley::engine {
namespace {

auto BelowOf(std::mt19937_64& random) {
  return [&random](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
}

void MakeLayered(const ModelShape& model, planner::Plan* plan) {
  planner::Plan layered = *plan;
  layered.schedule = planner::ScheduleFamily::kLayered;
  for (planner::PipelinePlan& pipeline : layered.pipelines) {
    for (planner::StagePlan& stage : pipeline.stages) stage.in_flight = 0;
  }
  if (planner::Validate(layered, model).ok()) *plan = std::move(layered);
}

}  // namespace

planner::Plan OneDevicePlan(const TinyJob& job) {
  planner::Plan plan;
  plan.strategy = "one device";
  plan.epoch = Epoch(1);
  plan.global_batch = job.config.training.global_batch_size;
  plan.seq_len = job.config.training.seq_len;
  plan.dtype = PrecisionOf(job.config.training)->compute;
  planner::StagePlan stage;
  stage.ministages = {{0, job.model.num_layers - 1}};
  planner::RankPlan rank;
  rank.device = DeviceId("n0/gpu0");
  rank.shard_ratio = 1;
  stage.units = {{{rank}, {plan.global_batch}}};
  plan.pipelines = {{{stage}}};
  return plan;
}

PlannedJob Offloading(PlannedJob planned, const OffloadKinds& kinds) {
  planner::ForEachRank(planned.plan, [&kinds](planner::RankPlan& rank) { rank.offload = kinds; });
  return planned;
}

void DrawOffload(const TinyJob& job, uint64_t drawn, planner::Plan* plan) {
  std::mt19937_64 random(drawn);
  planner::PlanLimits limits = planner::kEngineLimits;
  limits.steps_in_turn &= job.config.training.max_norm == 0 && plan->dtype != DType::kFloat16;
  planner::DrawOffload(limits, BelowOf(random), plan);
}

std::vector<std::string> OffloadWords(const planner::Plan& plan) {
  OffloadKinds some, all = OffloadKinds::All();
  planner::ForEachRank(plan, [&](const planner::RankPlan& rank) {
    some = some.Or(rank.offload);
    all = all.And(rank.offload);
  });
  std::vector<std::string> words = WordsOf(some);
  if (plan.optimizer_steps == planner::OptimizerSteps::kInTurn) words.emplace_back("in turn");
  if (some.Without(all).any()) words.emplace_back("unlike ranks");
  return words;
}

PlannedJob WithDrawnOffload(PlannedJob planned, uint64_t drawn) {
  std::mt19937_64 random(Mix64(drawn));
  const auto below = BelowOf(random);
  if (below(2) == 0) planned.job.config.training.max_norm = 0;
  if (below(2) == 0) MakeLayered(planned.job.model, &planned.plan);
  if (planned.plan.dtype == DType::kFloat16) planned.job.overflowing_step = 1;
  DrawOffload(planned.job, random(), &planned.plan);
  return planned;
}

}  // namespace motley::engine
