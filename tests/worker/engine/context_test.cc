// Before its first step a rank says what its card holds beside tensors, where the plan counted less.
#include <memory>

#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/fake_card.h"

namespace motley::engine {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class ContextTest : public EngineTest {
 protected:
  // What a rank on a card reports that holds `beside` bytes where the plan counted `planned`.
  int64_t Reported(int64_t beside, int64_t planned) {
    config_.training.steps = 1;
    std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}});
    assignments[0].planned_context_bytes = planned;
    FakeCard card(1);
    card.set_beside_allocator_bytes(beside);
    EngineOptions options;
    options.backend = &card;
    int64_t reported = -1;
    const Outcome outcome = Train(
        assignments,
        [&](int, FakeHost& host, Engine&) { host.on_step = [&](const StepResult&) { reported = host.context_bytes; }; },
        [&](int) { return options; });
    EXPECT_TRUE(outcome.ends[0].ok()) << outcome.ends[0].status();
    return reported;
  }
};

TEST_F(ContextTest, MoreThanThePlanCountedIsReported) {
  const int64_t reported = Reported(900 * kMiB, 800 * kMiB);
  EXPECT_GE(reported, 900 * kMiB);
  EXPECT_LT(reported, 901 * kMiB) << "what libraries keep of the allocator is little here";
}

TEST_F(ContextTest, WhatFitsIsNot) {
  EXPECT_EQ(Reported(700 * kMiB, 800 * kMiB), 0);
  EXPECT_EQ(Reported(820 * kMiB, 800 * kMiB), 0) << "within what the driver gives now and then";
}

TEST_F(ContextTest, NobodyCanSayMoreWhereOneOfTheNumbersIsNotKnown) {
  EXPECT_EQ(Reported(900 * kMiB, 0), 0);
  EXPECT_EQ(Reported(0, 1), 0) << "no card";
}

}  // namespace
}  // namespace motley::engine
