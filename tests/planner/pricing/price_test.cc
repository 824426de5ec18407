// Plans whose order must be mended keep more in flight than their family does: what is chosen fits as it runs.
#include "planner/pricing/price.h"

#include "common/model/operators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/mended_plan.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

// Two unlike cards, the first with so many bytes (0: its own).
std::unique_ptr<Setting> UnlikeCards(int64_t first_bytes = 0) {
  Cluster cluster = Nodes({{"T4", "A100-40GB"}});
  if (first_bytes > 0) cluster.kinds[0].memory_bytes = first_bytes;
  PlanRequest request;
  request.runnable = true;
  request.memory_reserve = 0;
  auto setting = Setting::Create(std::move(cluster), WorkOf(MediumModel(4, false), 8), request, nullptr);
  EXPECT_TRUE(setting.ok()) << setting.status();
  return *std::move(setting);
}

// The second stage takes four microbatches of the first's at once, so that 1F1B's two in flight become five.
Plan Unequal(const Setting& setting, OpSet recompute = OpSet::None()) {
  return PlanOf(setting, ScheduleFamily::k1F1B,
                {{{StageOf(setting, 0, {std::vector<int64_t>(8, 1)}, {{0, 1}}, 0, recompute),
                   StageOf(setting, 1, {{4, 4}}, {{2, 3}}, 0)}}});
}

int64_t FirstPeakBytes(const Evaluation& evaluation) {
  return evaluation.plan.pipelines[0].stages[0].units[0].ranks[0].predicted.peak_bytes;
}

class MendedPriceTest : public testing::Test {
 protected:
  MendedPriceTest() {
    const auto roomy = UnlikeCards();
    const Plan plan = Unequal(*roomy);
    in_family_order_ = PeakInFamilyOrder(*roomy, plan, 0);
    const auto priced = Price(*roomy, plan);
    EXPECT_TRUE(priced.ok()) << priced.status();
    as_mended_ = FirstPeakBytes(*priced);
  }
  int64_t in_family_order_ = 0, as_mended_ = 0;
};

TEST_F(MendedPriceTest, WhatFitsInTheFamilysOrderAloneDoesNotFit) {
  ASSERT_LT(in_family_order_, as_mended_);
  for (const int64_t bytes : {in_family_order_, as_mended_ - 1}) {
    const auto tight = UnlikeCards(bytes);
    const auto priced = Price(*tight, Unequal(*tight));
    ASSERT_TRUE(priced.ok()) << priced.status();
    ASSERT_EQ(priced->does_not_fit.size(), 1u) << bytes;
    EXPECT_THAT(priced->does_not_fit[0], HasSubstr("n0/gpu0 (T4) needs"));
    EXPECT_EQ(priced->plan.predicted.binding_constraint, "memory of n0/gpu0");
  }
  const auto enough = UnlikeCards(as_mended_);
  EXPECT_TRUE(Price(*enough, Unequal(*enough))->does_not_fit.empty());
}

TEST_F(MendedPriceTest, TheFastestThatFitsAsMendedIsChosen) {
  const auto tight = UnlikeCards(as_mended_ - 1);
  const Plan fast = Evaluate(*tight, Unequal(*tight))->plan, fits = Evaluate(*tight, Unequal(*tight, OpSet::All()))->plan;
  ASSERT_LT(fast.predicted.step_seconds, fits.predicted.step_seconds);
  std::vector<Contender> both = {{&fast}, {&fits}};
  const auto chosen = FindFastest(*tight, &both);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(*chosen, 1u);
  std::vector<Contender> alone = {{&fast}};
  const absl::Status refused = FindFastest(*tight, &alone).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("n0/gpu0 (T4) needs"));
}

// Whoever found it and whatever is said of what is left out; plans of another family of schedules are others.
TEST_F(MendedPriceTest, OnePlanOfSeveralStrategiesIsPricedOnce) {
  const auto setting = UnlikeCards();
  const Plan first = Evaluate(*setting, Unequal(*setting))->plan;
  Plan again = first, other = first;
  again.strategy = "zorse";
  again.unused = {{DeviceId("n9/gpu0"), "slow"}};
  other.schedule = ScheduleFamily::kZeroBubble;
  std::vector<Contender> contenders = {{&first}, {&again}, {&other}};
  const auto chosen = FindFastest(*setting, &contenders);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_GT(contenders[0].price, 0);
  EXPECT_EQ(contenders[1].price, 0);
  EXPECT_GT(contenders[2].price, 0);
  EXPECT_NE(*chosen, 1u);
}

// Asked once or twice, by whichever strategy: what Price says.
TEST_F(MendedPriceTest, ABookHasWhatPriceSays) {
  const auto tight = UnlikeCards(as_mended_ - 1);
  PriceBook prices;
  for (const char* strategy : {"zorse", "auto"}) {
    for (const OpSet recompute : {OpSet::None(), OpSet::All()}) {
      Plan plan = Unequal(*tight, recompute);
      plan.strategy = strategy;
      const auto known = prices.PriceOf(*tight, plan);
      const auto priced = Price(*tight, plan);
      ASSERT_TRUE(known.ok() && priced.ok()) << known.status() << priced.status();
      EXPECT_EQ(known->seconds, priced->plan.predicted.step_seconds);
      EXPECT_EQ(known->fits.ok(), priced->does_not_fit.empty());
      if (!known->fits.ok()) EXPECT_THAT(std::string(known->fits.message()), HasSubstr(priced->does_not_fit.front()));
    }
  }
  Plan nobodys = Unequal(*tight);
  nobodys.pipelines[0].stages[0].units[0].ranks[0].device = DeviceId("n7/gpu0");
  EXPECT_FALSE(prices.PriceOf(*tight, nobodys).ok());
  EXPECT_EQ(prices.PriceOf(*tight, nobodys).status(), Price(*tight, nobodys).status());
}

// A plan that was finished has a schedule of its own, which the book's other plans lack.
TEST_F(MendedPriceTest, ABookDoesNotTakeAFinishedPlanForItsLayout) {
  const auto setting = UnlikeCards();
  PriceBook prices;
  const auto as_made = Price(*setting, Unequal(*setting));
  ASSERT_TRUE(as_made.ok()) << as_made.status();
  Plan finished = as_made->plan;
  for (PipelineSchedule& pipeline : finished.training->pipelines) pipeline.stages.pop_back();
  ASSERT_TRUE(prices.PriceOf(*setting, Unequal(*setting)).ok());
  EXPECT_FALSE(prices.PriceOf(*setting, finished).ok()) << "a stage of its schedule is missing";
}

// The closed form knows the larger ministage alone and takes it to be the head's; here it is the other one.
// A search counts the fewest rows; a card with room for more logits at once makes more, and its peak says so.
TEST(PriceTest, ACardsHeadMakesAsManyLogitsAtOnceAsItHasRoomFor) {
  const auto priced = [](int64_t memory_bytes, bool is_card) {
    Cluster cluster = Nodes({{"T4"}});
    cluster.kinds[0].launches_ahead = is_card;
    if (memory_bytes > 0) cluster.kinds[0].memory_bytes = memory_bytes;
    PlanRequest request;
    request.runnable = true;
    request.memory_reserve = 0;
    ModelShape model = MediumModel(2, false);
    model.vocab_size = 32000;
    model.max_positions = 1024;
    auto work = WorkOf(model, 8);
    work.seq_len = 1024;
    const auto setting = Setting::Create(std::move(cluster), work, request, nullptr);
    EXPECT_TRUE(setting.ok()) << setting.status();
    const Plan plan = PlanOf(**setting, ScheduleFamily::kLayered, {{{StageOf(**setting, 0, {{8}}, {{0, 1}}, 0)}}});
    auto result = Price(**setting, plan);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  };
  const Evaluation roomy = priced(0, true), few = priced(0, false);
  EXPECT_EQ(roomy.programs[0].head_rows, 4096);
  EXPECT_EQ(few.programs[0].head_rows, kHeadChunkTokens);
  const int64_t most = FirstPeakBytes(roomy), least = FirstPeakBytes(few);
  EXPECT_GT(most, least);
  EXPECT_LE(most, least + (4096 - kHeadChunkTokens) * LogitColumns(32000) * (4 + 4));
  for (const int64_t memory : {least, most - 1, most}) {
    const Evaluation tight = priced(memory, true);
    EXPECT_TRUE(tight.does_not_fit.empty());
    EXPECT_EQ(tight.programs[0].head_rows, memory == most ? 4096 : kHeadChunkTokens);
    EXPECT_EQ(FirstPeakBytes(tight), memory == most ? most : least);
  }
}

TEST(PriceTest, BuffersAreTheProgramsOwn) {
  PlanRequest request;
  request.runnable = true;
  auto setting = Setting::Create(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(6, true), 8), request, nullptr);
  ASSERT_TRUE(setting.ok()) << setting.status();
  const Plan plan =
      PlanOf(**setting, ScheduleFamily::kLayered, {{{StageOf(**setting, 0, {{2, 2}, {2, 2}}, {{0, 3}, {4, 5}}, 2)}}});
  const auto priced = Price(**setting, plan);
  ASSERT_TRUE(priced.ok()) << priced.status();
  int64_t elements = 0;
  for (const UnitBuffer& buffer : priced->programs[0].gradient_buffers) elements += buffer.elements;
  const MemoryByPurpose& memory = priced->plan.pipelines[0].stages[0].units[0].ranks[0].predicted.memory;
  EXPECT_EQ(memory.gathered, (*setting)->costs.gradient_bytes() * elements);
  EXPECT_EQ(priced->programs[0].gradient_buffers.size(), 1u + 4u) << "the tied embedding's and a ministage's";
}

}  // namespace
}  // namespace motley::planner
