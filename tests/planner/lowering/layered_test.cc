// Lowering. Reference: Cephalo section 2.2, figure 4.
#include "planner/lowering/layered.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/hand_plan.h"

namespace motley::planner {
namespace {

// The collective lane as text: "G0 G1 R5 S".
std::string CollectiveLane(const Program& program) {
  std::string text;
  for (const Instruction& i : program.instructions) {
    if (const auto* g = std::get_if<Gather>(&i.op)) text += " G" + std::to_string(g->unit);
    if (const auto* r = std::get_if<ReduceScatter>(&i.op)) text += " R" + std::to_string(r->unit);
    if (std::holds_alternative<ReduceScalars>(i.op)) text += " S";
  }
  return text.substr(1);
}

Plan MakePlanOf(const ModelShape& model, const std::vector<DeviceDuty>& duties, int64_t batch) {
  return HandPlan(MakeInput(model, MixedDevices(), batch), "test", duties);
}

TEST(LayeredTest, TiedOrderKeepsTheEmbeddingAndTheLastTwoUnits) {
  const auto programs =
      LowerTraining(MakePlanOf(SmallModel(true, 2), {{0, 3, 2, false, 1}, {1, 0, 0, false, 0}}, 3), SmallModel(true, 2));
  ASSERT_TRUE(programs.ok()) << programs.status();
  // Units 0 embedding, 1, 2 layers, 3 head; the head's share of the embedding's gradient right after the head.
  EXPECT_EQ(CollectiveLane((*programs)[0]), "G0 G1 G2 G3 G1 R3 R0 R2 R1 R0 S");
  // A rank without samples reaches the same collectives in the same order.
  EXPECT_EQ(CollectiveLane((*programs)[1]), CollectiveLane((*programs)[0]));
}

TEST(LayeredTest, UntiedOrderGathersTheEmbeddingAgain) {
  const auto programs = LowerTraining(MakePlanOf(SmallModel(false, 2), {{0, 3, 2, false, 1}}, 3), SmallModel(false, 2));
  ASSERT_TRUE(programs.ok()) << programs.status();
  EXPECT_EQ(CollectiveLane((*programs)[0]), "G0 G1 G2 G3 G1 R3 G0 R2 R1 R0 S");
}

TEST(LayeredTest, ProgramOfTheSmallestModelInFull) {
  const ModelShape model = SmallModel(true, 1);
  const auto programs = LowerTraining(MakePlanOf(model, {{0, 3, 2, true, 1}}, 3), model);
  ASSERT_TRUE(programs.ok()) << programs.status();
  const std::string text = ToText((*programs)[0]);
  const std::string body = text.substr(text.find("\n0 ") + 1);
  EXPECT_EQ(body,
            "0 gather unit=0 buffer=2\n"
            "1 gather unit=1 buffer=1\n"
            "2 forward unit=0 mb=0 buffer=2 keep=all after=0\n"
            "3 forward unit=0 mb=1 buffer=2 keep=all\n"
            "4 gather unit=2 buffer=0\n"
            "5 forward unit=1 mb=0 buffer=1 keep=boundary after=1\n"
            "6 forward unit=1 mb=1 buffer=1 keep=boundary\n"
            "7 forward unit=2 mb=0 buffer=0 tied=2 keep=all after=0,4\n"
            "8 forward unit=2 mb=1 buffer=0 tied=2 keep=all\n"
            "9 backward unit=2 mb=0 buffer=0 tied=2 grad=0 tied_grad=2 after=0,4\n"
            "10 backward unit=2 mb=1 buffer=0 tied=2 grad=0 tied_grad=2\n"
            "11 release buffer=0 after=4\n"
            "12 reduce_scatter unit=2 grad=0 after=10\n"
            "13 reduce_scatter unit=0 grad=2 after=10\n"
            "14 recompute unit=1 mb=0 buffer=1 after=1\n"
            "15 backward unit=1 mb=0 buffer=1 grad=1\n"
            "16 recompute unit=1 mb=1 buffer=1\n"
            "17 backward unit=1 mb=1 buffer=1 grad=1\n"
            "18 release buffer=1 after=1\n"
            "19 reduce_scatter unit=1 grad=1 after=17\n"
            "20 backward unit=0 mb=0 buffer=2 grad=2 after=0,13\n"
            "21 backward unit=0 mb=1 buffer=2 grad=2\n"
            "22 release buffer=2 after=0\n"
            "23 reduce_scatter unit=0 grad=2 after=21\n"
            "24 reduce_scalars after=21\n"
            "25 optimizer_step after=24\n");
}

TEST(LayeredTest, BuffersHoldTheUnitsThatShareThem) {
  const ModelShape tied = SmallModel(true), untied = SmallModel(false);
  const auto layout = ParameterLayout(untied);
  EXPECT_THAT(BuffersOf(untied, layout).parameters,
              testing::ElementsAre(std::max(layout[0].num_elements, layout[2].num_elements),
                                   std::max(layout[1].num_elements, layout[5].num_elements)));
  EXPECT_THAT(BuffersOf(tied, ParameterLayout(tied)).parameters,
              testing::ElementsAre(ParameterLayout(tied)[2].num_elements, ParameterLayout(tied)[1].num_elements,
                                   ParameterLayout(tied)[0].num_elements));
}

TEST(LayeredTest, EveryRandomPlanLowersToValidMatchingPrograms) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    const ModelShape model = SmallModel(random() % 2 == 0, 1 + static_cast<int64_t>(random() % 6));
    std::vector<DeviceDuty> duties;
    int64_t batch = 0;
    const size_t world = 1 + random() % 5;
    for (size_t r = 0; r < world; ++r) {
      const int64_t b = r == 0 ? 1 + static_cast<int64_t>(random() % 6) : static_cast<int64_t>(random() % 7);
      duties.push_back({r, b, b == 0 ? 0 : 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(b)), random() % 2 == 0,
                        r == 0 ? 1.0 : 0.0});
      batch += b;
    }
    const auto programs = LowerTraining(MakePlanOf(model, duties, batch), model);
    ASSERT_TRUE(programs.ok()) << programs.status();
    std::vector<std::vector<int64_t>> samples;
    for (const Program& program : *programs) {
      EXPECT_EQ(CollectiveLane(program), CollectiveLane((*programs)[0]));
      samples.push_back(program.microbatches);
    }
    const auto evaluations = LowerEvaluation(model, samples);
    ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  }
}

}  // namespace
}  // namespace motley::planner
