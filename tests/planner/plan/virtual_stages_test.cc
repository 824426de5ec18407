// Which stage holds which virtual stage, and what follows from it.
#include "planner/plan/virtual_stages.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/ownership.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;

PipelinePlan PipelineOf(const std::vector<std::vector<LayerRange>>& ministages) {
  PipelinePlan pipeline;
  for (const std::vector<LayerRange>& of_stage : ministages) pipeline.stages.emplace_back().ministages = of_stage;
  return pipeline;
}

std::vector<size_t> StagesOf(const std::vector<VirtualStage>& order) {
  std::vector<size_t> stages;
  for (const VirtualStage& v : order) stages.push_back(v.stage);
  return stages;
}

TEST(VirtualStagesTest, TheTwoMaps) {
  EXPECT_THAT(StagesOf(MappedStages(VirtualStageMap::kRoundRobin, 3, 2)), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(StagesOf(MappedStages(VirtualStageMap::kV, 3, 2)), ElementsAre(0, 1, 2, 2, 1, 0));
  EXPECT_THAT(MappedStages(VirtualStageMap::kV, 2, 2),
              ElementsAre(VirtualStage{0, 0}, VirtualStage{1, 0}, VirtualStage{1, 1}, VirtualStage{0, 1}));
  EXPECT_THAT(StagesOf(MappedStages(VirtualStageMap::kV, 2, 1)), ElementsAre(0, 1));
}

TEST(VirtualStagesTest, ThePassFollowsTheLayers) {
  const PipelinePlan round = PipelineOf({{{0, 1}, {4, 4}}, {{2, 3}, {5, 6}}});
  EXPECT_THAT(StagesOf(VirtualStagesOf(round)), ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(EmbeddingStage(round), 0u);
  EXPECT_EQ(HeadStage(round), 1u);

  const PipelinePlan v = PipelineOf({{{0, 1}, {6, 6}}, {{2, 3}, {4, 5}}});
  EXPECT_THAT(VirtualStagesOf(v), ElementsAre(VirtualStage{0, 0}, VirtualStage{1, 0}, VirtualStage{1, 1}, VirtualStage{0, 1}));
  EXPECT_EQ(EmbeddingStage(v), 0u);
  EXPECT_EQ(HeadStage(v), 0u);
}

TEST(VirtualStagesTest, BothEndsOfTheModelLieOnTheFirstStageOfAV) {
  const PipelinePlan v = PipelineOf({{{0, 0}, {3, 3}}, {{1, 1}, {2, 2}}});
  EXPECT_THAT(UnitsOfStage(v, 0, 6), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(UnitsOfStage(v, 1, 6), ElementsAre(2, 3));
}

}  // namespace
}  // namespace motley::planner
