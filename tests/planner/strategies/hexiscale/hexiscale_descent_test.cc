#include "planner/strategies/hexiscale/hexiscale_descent.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "planner/strategies/hexiscale/hexiscale_partition.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

// Two pipelines of an A100 and a T4 over a slow network, their layers badly cut: what is on the T4s is mostly waited for.
class HexiscaleDescentTest : public ::testing::Test {
 protected:
  explicit HexiscaleDescentTest(PlanRequest request = {})
      : setting_(
            SettingOf(ClusterText({{"n1", Cards("A100-40GB", 2)}, {"n2", Cards("T4", 2)}}, 10), "gpt2-124m", 8, 512, request)),
        problem_(*setting_, /*shared_links=*/false),
        designer_(&problem_, RatesOf(*setting_), setting_->pinned_stage, /*limits=*/{}) {
    layout_.zero_stage = 2;
    for (const int first : {0, 1}) {
      HexiscalePipeline pipeline;
      pipeline.stages = {{{first}, 2, false}, {{first + 2}, 10, false}};
      pipeline.batch = 4;
      layout_.pipelines.push_back(pipeline);
    }
  }

  // Seconds after at most `most` layouts.
  double Descend(int most = 1'000'000) {
    HexiscaleDescent descent(&problem_, &designer_, setting_->pinned_stage, [most]() mutable { return most-- > 0; });
    const double seconds = descent.Run(&layout_);
    EXPECT_NEAR(seconds, problem_.StepSeconds(layout_), 1e-12);
    return seconds;
  }

  void ExpectWhole() const {
    std::set<int> devices;
    int64_t batch = 0;
    for (const HexiscalePipeline& pipeline : layout_.pipelines) {
      int64_t layers = 0;
      for (const HexiscaleStage& stage : pipeline.stages) {
        layers += stage.layers;
        EXPECT_GE(stage.layers, 1);
        EXPECT_EQ(setting_->workload.model.num_heads % static_cast<int64_t>(stage.devices.size()), 0);
        for (const int device : stage.devices) {
          EXPECT_TRUE(devices.insert(device).second);
          EXPECT_EQ(setting_->KindOf(device), setting_->KindOf(stage.devices[0]));
        }
      }
      EXPECT_EQ(layers, setting_->workload.model.num_layers);
      EXPECT_GE(pipeline.batch, 1);
      batch += pipeline.batch;
    }
    EXPECT_EQ(devices.size(), 4u);
    EXPECT_EQ(batch, 8);
  }

  std::unique_ptr<Setting> setting_;
  HexiscaleProblem problem_;
  PipelineDesigner designer_;
  HexiscaleLayout layout_;
};

TEST_F(HexiscaleDescentTest, MovesWhatWaitsAndKeepsEverythingThere) {
  const double before = problem_.StepSeconds(layout_);
  EXPECT_LT(Descend(), 0.6 * before);
  ExpectWhole();
}

TEST_F(HexiscaleDescentTest, NothingSpentNothingChanged) {
  const double before = problem_.StepSeconds(layout_);
  EXPECT_LE(Descend(0), before);  // activations are kept where that fits
  EXPECT_EQ(layout_.pipelines[0].stages[1].layers, 10);
}

TEST_F(HexiscaleDescentTest, MoreSpentIsNeverWorse) {
  const HexiscaleLayout start = layout_;
  double last = problem_.StepSeconds(layout_);
  for (const int most : {1, 10, 100, 1000}) {
    layout_ = start;
    const double seconds = Descend(most);
    EXPECT_LE(seconds, last);
    ExpectWhole();
    last = seconds;
  }
}

PlanRequest PinnedToSecond() {
  PlanRequest request;
  request.pins = {{"stage1", "n2"}};
  return request;
}

class HexiscaleDescentPinnedTest : public HexiscaleDescentTest {
 protected:
  HexiscaleDescentPinnedTest() : HexiscaleDescentTest(PinnedToSecond()) {}
};

TEST_F(HexiscaleDescentPinnedTest, PinnedDevicesStayInTheirStage) {
  Descend();
  ExpectWhole();
  for (const HexiscalePipeline& pipeline : layout_.pipelines) {
    for (size_t j = 0; j < pipeline.stages.size(); ++j) {
      for (const int device : pipeline.stages[j].devices) EXPECT_TRUE(device < 2 || j == 1);
    }
  }
}

}  // namespace
}  // namespace motley::planner
