// The frugal plan as it runs: `motley plan` answers it where `motley estimate` says that it fits.
#include "planner/strategies/frugal_plan.h"

#include <gtest/gtest.h>

#include "planner/answers/plan_answer.h"
#include "planner/plan/schedule_check.h"
#include "planner/pricing/price.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

// Three cards that hold little more than the state of the largest model that is trained on them here.
constexpr char kThreeToml[] = R"(name = "three"
[[node]]
name = "n0"
host_memory_gib = 64
gpus = [{card = "RTX-2070-SUPER", count = 3}]
)";

std::unique_ptr<Setting> ThreeCards(Workload workload, int64_t batch, int64_t seq_len) {
  workload.dtype = DType::kBFloat16;
  workload.global_batch = batch;
  workload.seq_len = seq_len;
  PlanRequest request;
  request.runnable = true;
  request.budget_nodes = 20'000;
  return MakeSetting(std::move(workload), request, kThreeToml);
}

// Owned ranges are rounded to whole elements.
constexpr int64_t kRoundingBytes = 1024;

TEST(FrugalPlanTest, ItsProgramsNeedWhatItSays) {
  for (const bool tied : {false, true}) {
    for (const int64_t layers : {1, 3, 22}) {
      for (const int64_t batch : {1, 2, 3, 5, 50}) {
        Workload workload = *LoadModel("llama-1.1b");
        workload.model.tie_embeddings = tied;
        workload.model.num_layers = layers;
        const auto setting = ThreeCards(std::move(workload), batch, 1024);
        const Plan plan = FrugalPlan(*setting, {});
        const auto priced = Price(*setting, plan);
        ASSERT_TRUE(priced.ok()) << priced.status();
        EXPECT_EQ(ValidateSchedule(plan, *priced->plan.training, true), absl::OkStatus());
        const std::vector<UnitPlan>& said = plan.pipelines[0].stages[0].units;
        for (size_t u = 0; u < said.size(); ++u) {
          const RankPrediction& needs = priced->plan.pipelines[0].stages[0].units[u].ranks[0].predicted;
          EXPECT_LE(needs.peak_bytes, said[u].ranks[0].predicted.peak_bytes + kRoundingBytes)
              << layers << " layers, batch " << batch << " of which " << said[u].batch();
        }
      }
    }
  }
}

// One card computes and the others store: no strategy finds that.
TEST(FrugalPlanTest, IsTheAnswerWhereNothingElseFits) {
  const auto setting = ThreeCards(*LoadModel("llama-1.1b"), 50, 4096);
  ASSERT_EQ(FindFrugal(*setting).fits, absl::OkStatus());
  const auto evaluation = PlanAndEvaluate(*setting, *FindInCatalog("auto"));
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(ValidateSchedule(evaluation->plan, *evaluation->plan.training, true), absl::OkStatus());
  EXPECT_TRUE(evaluation->plan.predicted.as_run);
}

}  // namespace
}  // namespace motley::planner
