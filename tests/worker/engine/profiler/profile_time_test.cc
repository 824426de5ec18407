// The limit of a card's profile, by a clock that the card's own work moves.
#include "worker/engine/profiler/profile_time.h"

#include <gmock/gmock.h>

#include "tests/worker/engine/lanes/clocked_stream.h"
#include "worker/engine/device/host_backend.h"
#include "worker/engine/profiler/compute_profiler.h"

namespace motley::engine {
namespace {

using ::testing::HasSubstr;

// Every piece of work takes as long, on the card and on the clock. A run of the whole passes is four: inputs, forward, backward,
// and what is left goes.
class SlowCard : public HostBackend {
 public:
  SlowCard(FakeClock& clock, absl::Duration piece)
      : stream_([&clock, piece](int) {
          clock.Advance(piece);
          return piece;
        }) {}
  DeviceStream* StreamOf(Lane) override { return &stream_; }
  absl::Duration soak() const override { return absl::Seconds(10); }

 private:
  ClockedStream stream_;
};

class CardsMinute : public ::testing::Test {
 protected:
  CardsMinute() {
    assignment_.model = {.family = ModelFamily::kLlama,
                         .vocab_size = 64,
                         .hidden_size = 16,
                         .num_layers = 2,
                         .num_heads = 2,
                         .num_kv_heads = 2,
                         .head_dim = 8,
                         .intermediate_size = 16,
                         .max_positions = 8,
                         .tie_embeddings = true};
    assignment_.config.training.seq_len = 8;
    assignment_.config.training.global_batch_size = 4;
    assignment_.device.id = DeviceId("n1/gpu0");
  }
  // Of a card whose pieces take so long.
  ComputeProfile Profile(absl::Duration piece) {
    FakeClock clock;
    SlowCard card(clock, piece);
    ComputePacer pacer(assignment_.device, clock);
    ProfileTime time(clock);
    ComputeProfile profile = ProfileUnits(assignment_, card, pacer, time);
    text_ = time.CutShortText();
    EXPECT_EQ(profile.cut_short, !text_.empty());
    EXPECT_DOUBLE_EQ(profile.profile_seconds, absl::ToDoubleSeconds(time.spent()));
    for (const UnitProfile* unit : {&profile.embedding, &profile.layer, &profile.head}) {
      EXPECT_GE(unit->points.size(), 2u);
      EXPECT_EQ(unit->points[0].forward_seconds, absl::ToDoubleSeconds(piece)) << text_;
      EXPECT_EQ(unit->points[0].backward_seconds, absl::ToDoubleSeconds(piece)) << text_;
      EXPECT_GT(unit->points[0].saved_bytes, 0);
    }
    EXPECT_GT(profile.optimizer_seconds_per_element, 0);
    return profile;
  }

  RankAssignment assignment_;
  std::string text_;
};

TEST_F(CardsMinute, IsEnoughForACardThatTrains) {
  const ComputeProfile profile = Profile(absl::Milliseconds(20));
  EXPECT_EQ(text_, "");
  EXPECT_EQ(profile.layer.points.size(), 3u);
  EXPECT_LT(profile.profile_seconds, 30);
}

TEST_F(CardsMinute, IsKeptByASlowCard) {
  for (const int milliseconds : {200, 300, 400, 600, 800, 1000, 1200}) {
    const ComputeProfile profile = Profile(absl::Milliseconds(milliseconds));
    EXPECT_LE(profile.profile_seconds, 60) << milliseconds << " ms: " << text_;
    EXPECT_GE(profile.profile_seconds, 10);
    EXPECT_TRUE(profile.cut_short);
  }
}

TEST_F(CardsMinute, LeavesOutWhatThePlannerCanDoWithout) {
  const ComputeProfile profile = Profile(absl::Milliseconds(600));
  EXPECT_THAT(text_, HasSubstr("; layer: halves and part;"));
  for (const ComputePoint& point : profile.layer.points) {
    EXPECT_EQ(point.backward_input_seconds + point.backward_weight_seconds, 0);
    EXPECT_EQ(point.part_forward_seconds + point.part_backward_seconds, 0);
  }
  EXPECT_EQ(profile.layer.part, 0);
  EXPECT_EQ(profile.layer.points[1].forward_seconds, profile.layer.points[0].forward_seconds) << "measured, and not doubled";
}

}  // namespace
}  // namespace motley::engine
