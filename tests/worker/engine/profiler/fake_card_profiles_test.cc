// Profiles of units on cards that are not there, whose streams are late.
#include <algorithm>
#include <utility>

#include "common/model/operators.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "tests/worker/engine/profiler/compute_profiler_fixture.h"

namespace motley::engine {
namespace {

using FakeCardProfilesTest = ComputeProfilerTest;

TEST_F(FakeCardProfilesTest, ALateStreamsBytesAreThoseOfTheOperatorTable) {
  FakeCard card(3);
  const ComputeProfile profile = Profile(card);
  for (const auto& [unit, kind] : {std::pair(&profile.embedding, UnitKind::kEmbedding),
                                   std::pair(&profile.layer, UnitKind::kLayer), std::pair(&profile.head, UnitKind::kHead)}) {
    ASSERT_GE(unit->points.size(), 2u);
    for (const ComputePoint& point : unit->points) {
      EXPECT_EQ(point.saved_bytes, SavedBytes(assignment_.model, kind, point.microbatch, 64, DType::kFloat32));
      EXPECT_GT(point.forward_seconds, 0);
      EXPECT_GT(point.backward_seconds, 0);
    }
  }
  EXPECT_EQ(profile.context_bytes, 2 * 64 * 8 * 4);  // the rotary tables
  EXPECT_EQ(profile.attention, "host flash");
  EXPECT_GT(profile.optimizer_seconds_per_element, 0);
}

TEST_F(FakeCardProfilesTest, ACardsContextIsWhatNoTensorCanHave) {
  FakeCard card(3);
  card.set_beside_allocator_bytes(int64_t{500} << 20);
  const int64_t context = Profile(card).context_bytes - (int64_t{500} << 20);
  // The rotary tables, those of the part beside them.
  EXPECT_GE(context, 2 * 64 * 8 * 4);
  EXPECT_LE(context, 2 * 2 * 64 * 8 * 4);
}

// Plans hold what is measured: a kernel of our own makes no tensor between the activation's two gradients.
TEST_F(FakeCardProfilesTest, WhatOwnKernelsDoNotMakeIsNotCounted) {
  assignment_.model.intermediate_size = 640;  // so that the activation's is the fullest moment
  assignment_.config.training.seq_len = 8;    // an emulated card takes its time
  assignment_.config.training.global_batch_size = 1;
  FakeCard without(3), with(3);
  with.set_kernels(&TheFakeKernels());
  const ComputeProfile operators = Profile(without), kernels = Profile(with);
  // A slow host measures fewer sizes.
  for (size_t p = 0; p < std::min(operators.layer.points.size(), kernels.layer.points.size()); ++p) {
    const ComputePoint &own = kernels.layer.points[p], &other = operators.layer.points[p];
    ASSERT_EQ(own.microbatch, other.microbatch);
    EXPECT_EQ(own.saved_bytes, other.saved_bytes);
    EXPECT_LT(own.workspace_bytes, other.workspace_bytes) << own.microbatch;
  }
}

TEST_F(FakeCardProfilesTest, AStreamThatHoldsNoModelFailsByTheOperatorsWords) {
  FakeCard card(3);
  assignment_.model.head_dim = 0;  // no such model: an operator throws
  EXPECT_ANY_THROW(Profile(card));
}

}  // namespace
}  // namespace motley::engine
