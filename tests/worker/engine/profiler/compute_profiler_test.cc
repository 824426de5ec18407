#include "worker/engine/profiler/compute_profiler.h"

#include <functional>
#include <utility>

#include "common/base/clock.h"
#include "common/model/operators.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/lanes/clocked_stream.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/device/host_backend.h"

namespace motley::engine {
namespace {

class ComputeProfilerTest : public ::testing::Test {
 protected:
  ComputeProfilerTest() {
    assignment_.model = {.family = ModelFamily::kLlama,
                         .vocab_size = 256,
                         .hidden_size = 64,
                         .num_layers = 2,
                         .num_heads = 4,
                         .num_kv_heads = 2,
                         .head_dim = 16,
                         .intermediate_size = 160,
                         .max_positions = 64,
                         .tie_embeddings = true};
    assignment_.config.training.seq_len = 64;
    assignment_.config.training.global_batch_size = 4;
    assignment_.device.id = DeviceId("n1/gpu0");
    backend_.SetMemoryCap(0, "n1/gpu0");
  }
  void TearDown() override { backend_.SetMemoryCap(0, "n1/gpu0"); }

  ComputeProfile Profile() { return Profile(backend_); }
  ComputeProfile Profile(DeviceBackend& backend) {
    ComputePacer pacer(assignment_.device, clock_);
    return ProfileUnits(assignment_, backend, pacer);
  }
  // A device slow enough that the host meets its declared times.
  void Emulate(double flops_per_second) {
    assignment_.device.kind = DeviceKind::kEmulated;
    assignment_.device.flops_per_second = flops_per_second;
    assignment_.device.launch = absl::Milliseconds(1);
  }

  RankAssignment assignment_;
  SystemClock clock_;
  HostBackend backend_;
};

TEST_F(ComputeProfilerTest, BytesAreThoseOfTheOperatorTable) {
  const ComputeProfile profile = Profile();
  EXPECT_EQ(profile.device, assignment_.device.id);
  EXPECT_EQ(profile.digest, ComputeProfileDigest(assignment_.device, assignment_.model, 64, DType::kFloat32));
  const auto check = [&](const UnitProfile& unit, UnitKind kind) {
    ASSERT_GE(unit.points.size(), 2u);
    int64_t samples = 1;
    for (const ComputePoint& point : unit.points) {
      EXPECT_EQ(point.microbatch, samples);
      EXPECT_EQ(point.saved_bytes, SavedBytes(assignment_.model, kind, samples, 64, DType::kFloat32));
      EXPECT_GT(point.forward_seconds, 0);
      EXPECT_GT(point.backward_seconds, 0);
      samples *= 2;
    }
  };
  check(profile.embedding, UnitKind::kEmbedding);
  check(profile.layer, UnitKind::kLayer);
  check(profile.head, UnitKind::kHead);
  EXPECT_GT(profile.layer.points.front().workspace_bytes, 0);
  EXPECT_GT(profile.head.points.front().workspace_bytes, 64 * 256 * 4);  // one chunk's logits at least
  EXPECT_EQ(profile.context_bytes, 2 * 64 * 8 * 4);                      // the rotary tables
  EXPECT_GT(profile.optimizer_seconds_per_element, 0);
}

TEST_F(ComputeProfilerTest, MixedPrecisionIsMeasuredInTheTypeThatComputes) {
  for (const DType half : {DType::kBFloat16, DType::kFloat16}) {
    assignment_.config.training.mixed_precision_param = std::string(DTypeName(half));
    const ComputeProfile profile = Profile();
    EXPECT_EQ(profile.digest, ComputeProfileDigest(assignment_.device, assignment_.model, 64, half));
    EXPECT_NE(profile.digest, ComputeProfileDigest(assignment_.device, assignment_.model, 64, DType::kFloat32));
    for (const ComputePoint& point : profile.layer.points) {
      EXPECT_EQ(point.saved_bytes, SavedBytes(assignment_.model, UnitKind::kLayer, point.microbatch, 64, half));
    }
    EXPECT_EQ(profile.context_bytes, 2 * 64 * 8 * 2);  // the rotary tables
    EXPECT_GT(profile.optimizer_seconds_per_element, 0);
  }
}

// Its compute stream has a clock of its own.
class ClockedCard : public HostBackend {
 public:
  explicit ClockedCard(std::function<absl::Duration(int)> takes) : stream_(std::move(takes)) {}
  DeviceStream* StreamOf(Lane) override { return &stream_; }
  const ClockedStream& stream() const { return stream_; }

 private:
  ClockedStream stream_;
};

// What the host needs for a pass is thousands of times what the stream says.
TEST_F(ComputeProfilerTest, AStreamsTimesAreItsOwn) {
  // A run of a point: inputs, forward, backward, what is left goes. The first fills the stream and does not count.
  const int forward_ns[] = {1, 30, 20, 40}, backward_ns[] = {2, 90, 80, 70};
  ClockedCard card([&](int number) {
    const int run = number / 4 % 4, part = number % 4;
    if (part == 0 || part == 3) return absl::Hours(1);
    return absl::Nanoseconds(part == 1 ? forward_ns[run] : backward_ns[run]);
  });
  const ComputeProfile profile = Profile(card);
  for (const UnitProfile* unit : {&profile.embedding, &profile.layer, &profile.head}) {
    ASSERT_GE(unit->points.size(), 2u);
    for (const ComputePoint& point : unit->points) {
      EXPECT_NEAR(point.forward_seconds, 20e-9, 1e-12);
      EXPECT_NEAR(point.backward_seconds, 70e-9, 1e-12);
    }
  }
  EXPECT_EQ(profile.step_overhead_seconds, 0);
}

TEST_F(ComputeProfilerTest, OnAStreamOneRunOfAPointIsAwaited) {
  ClockedCard card([](int) { return absl::Nanoseconds(1); });
  const ComputeProfile profile = Profile(card);
  const size_t points = profile.embedding.points.size() + profile.layer.points.size() + profile.head.points.size();
  // The tables, three units' first calls and the optimizer; of a point three waits for its bytes and one for its times.
  EXPECT_EQ(card.stream().looks(), static_cast<int>(5 + 4 * points));
}

TEST_F(ComputeProfilerTest, ALateStreamsBytesAreThoseOfTheOperatorTable) {
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
  EXPECT_GT(profile.optimizer_seconds_per_element, 0);
}

TEST_F(ComputeProfilerTest, AStreamThatHoldsNoModelFailsByTheOperatorsWords) {
  FakeCard card(3);
  assignment_.model.head_dim = 0;  // no such model: an operator throws
  EXPECT_ANY_THROW(Profile(card));
}

TEST_F(ComputeProfilerTest, EmulatedDeviceIsMeasuredAsDeclared) {
  Emulate(5e8);
  const ComputeProfile profile = Profile();
  for (const ComputePoint& point : profile.layer.points) {
    const double declared = 1e-3 + BackwardFlops(assignment_.model, UnitKind::kLayer, point.microbatch, 64) / 5e8;
    EXPECT_GE(point.backward_seconds, declared * (1 - 1e-6));
  }
  EXPECT_GE(profile.optimizer_seconds_per_element, kOptimizerFlopsPerElement / 5e8 * (1 - 1e-6));
  EXPECT_NEAR(profile.step_overhead_seconds, 1e-3, 1e-9);
}

TEST_F(ComputeProfilerTest, SlowDeviceIsAskedForLessThanFiveSeconds) {
  assignment_.model = {.family = ModelFamily::kGpt2,
                       .vocab_size = 256,
                       .hidden_size = 128,
                       .num_layers = 4,
                       .num_heads = 4,
                       .num_kv_heads = 4,
                       .head_dim = 32,
                       .intermediate_size = 512,
                       .max_positions = 256,
                       .tie_embeddings = true};
  assignment_.config.training.seq_len = 256;
  assignment_.config.training.global_batch_size = 64;
  Emulate(2e9);
  const ComputeProfile profile = Profile();
  // The instructions' own times, whatever else the host does: the fastest of each point's runs.
  double declared = 0;
  for (const UnitProfile* unit : {&profile.embedding, &profile.layer, &profile.head}) {
    for (const ComputePoint& point : unit->points) declared += point.forward_seconds + point.backward_seconds;
  }
  EXPECT_LT(declared, 5.0);
  EXPECT_GE(profile.layer.points.size(), 3u);
}

TEST_F(ComputeProfilerTest, StopsBeyondTheDevicesMemory) {
  const int64_t one = SavedBytes(assignment_.model, UnitKind::kLayer, 1, 64, DType::kFloat32);
  assignment_.config.training.global_batch_size = 1024;
  const int64_t cap = backend_.CurrentBytes() + 10 * one;
  backend_.SetMemoryCap(cap, "n1/gpu0");
  const ComputeProfile profile = Profile();
  EXPECT_GE(profile.layer.points.size(), 2u);
  EXPECT_LE(profile.layer.points.back().microbatch, 16);  // the first that does not fit
  EXPECT_EQ(backend_.MemoryCapBytes(), cap);
}

TEST_F(ComputeProfilerTest, DeviceThatHoldsNoUnitIsStillProfiled) {
  const int64_t cap = backend_.CurrentBytes() + 1024;
  backend_.SetMemoryCap(cap, "n1/gpu0");
  const ComputeProfile profile = Profile();
  ASSERT_EQ(profile.layer.points.size(), 2u);
  const ComputePoint &one = profile.layer.points[0], &two = profile.layer.points[1];
  EXPECT_GT(one.saved_bytes, 1024);
  EXPECT_EQ(two.microbatch, 2);
  EXPECT_DOUBLE_EQ(two.forward_seconds, 2 * one.forward_seconds);
  EXPECT_EQ(two.saved_bytes, 2 * one.saved_bytes);
  EXPECT_EQ(backend_.MemoryCapBytes(), cap);
}

TEST_F(ComputeProfilerTest, FailureRestoresTheMemoryLimit) {
  backend_.SetMemoryCap(int64_t{1} << 30, "n1/gpu0");
  assignment_.model.head_dim = 0;  // no such model: an operator throws
  EXPECT_ANY_THROW(Profile());
  EXPECT_EQ(backend_.MemoryCapBytes(), int64_t{1} << 30);
}

}  // namespace
}  // namespace motley::engine
