#include <functional>
#include <utility>

#include "common/base/clock.h"
#include "common/model/operators.h"
#include "common/model/parameters.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/called_operators.h"
#include "tests/worker/engine/lanes/clocked_stream.h"
#include "tests/worker/engine/profiler/compute_profiler_fixture.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/device/host_backend.h"
#include "worker/engine/model/unit_bench.h"
#include "worker/engine/profiler/optimizer_profiler.h"
#include "worker/engine/profiler/unit_profiler.h"

namespace motley::engine {
namespace {

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
  assignment_.model.num_kv_heads = 1, assignment_.config.training.global_batch_size = 2;  // no part, two sizes
  // Two series of runs for each point: inputs, forward, backward, what is left goes; and the same with a backward in two. The
  // first run fills the stream and does not count, and of the others the one in the middle does. A head evaluates first.
  const int forward_ns[] = {1, 30, 20, 40}, backward_ns[] = {2, 90, 80, 70}, input_ns[] = {3, 60, 50, 55};
  int settled = -1;  // the tables come before; then 8 series of two units
  ClockedCard card([&](int number) {
    settled += number == 0 ? 1 : 0;
    const bool halves = settled % 2 == 0, evaluates = !halves && settled > 8;
    const int pieces = halves || evaluates ? 5 : 4, run = number / pieces % 4, piece = number % pieces;
    if (piece == 0 || piece == pieces - 1 || (halves && piece == 1) || (evaluates && piece == 2)) return absl::Hours(1);
    if (halves) return absl::Nanoseconds(piece == 2 ? input_ns[run] : backward_ns[run]);
    return absl::Nanoseconds(piece == 1 ? forward_ns[run] : backward_ns[run]);
  });
  const ComputeProfile profile = Profile(card);
  for (const UnitProfile* unit : {&profile.embedding, &profile.layer, &profile.head}) {
    ASSERT_EQ(unit->points.size(), 2u);
    EXPECT_EQ(unit->part, 0);
    for (const ComputePoint& point : unit->points) {
      EXPECT_NEAR(point.forward_seconds, 30e-9, 1e-12);
      EXPECT_NEAR(point.backward_seconds, 80e-9, 1e-12);
      EXPECT_NEAR(point.backward_input_seconds, 55e-9, 1e-12);
      EXPECT_NEAR(point.backward_weight_seconds, 80e-9, 1e-12);
      EXPECT_EQ(point.part_forward_seconds + point.part_backward_seconds, 0);
    }
  }
  EXPECT_EQ(profile.step_overhead_seconds, 0);
}

// Fast for as long as its power limit lets it boost, as a small card is for seconds. Its work alone moves the clock.
class PowerLimitedCard : public HostBackend {
 public:
  explicit PowerLimitedCard(FakeClock& clock) : clock_(clock) {}
  static constexpr absl::Duration kBoosted = absl::Milliseconds(20), kSteady = absl::Milliseconds(36);

  DeviceStream* StreamOf(Lane) override { return &stream_; }
  absl::Duration soak() const override { return absl::Seconds(10); }

 private:
  absl::Duration Next() {
    const absl::Duration takes = worked_ < absl::Seconds(8) ? kBoosted : kSteady;
    worked_ += takes;
    clock_.Advance(takes);
    return takes;
  }

  FakeClock& clock_;
  absl::Duration worked_;
  ClockedStream stream_ = ClockedStream([this](int) { return Next(); });
};

TEST_F(ComputeProfilerTest, ACardIsMeasuredAsItIsInALongRun) {
  FakeClock clock;
  PowerLimitedCard card(clock);
  const ComputeProfile profile = Profile(card, clock);
  for (const UnitProfile* unit : {&profile.embedding, &profile.layer, &profile.head}) {
    for (const ComputePoint& point : unit->points) {
      EXPECT_DOUBLE_EQ(point.forward_seconds, absl::ToDoubleSeconds(PowerLimitedCard::kSteady));
      EXPECT_DOUBLE_EQ(point.backward_seconds, absl::ToDoubleSeconds(PowerLimitedCard::kSteady));
    }
  }
}

// An embedding's forward sums nothing by itself.
TEST_F(ComputeProfilerTest, WhatAStepAsksOfItsResultsIsMeasuredToo) {
  const Precision precision;
  UnitModel model(assignment_.model, 64, precision.compute, backend_.tensors());
  UnitBench bench(model, assignment_.model, 64, precision, backend_.tensors(), UnitKind::kEmbedding);
  bench.Prepare(1);
  CalledOperators operators;
  bench.Forward();
  EXPECT_TRUE(operators.Take().contains("aten::sum"));
}

// A card's cache would hold less, and its memory has no room for more.
TEST_F(ComputeProfilerTest, TheEndOfAStepIsMeasuredOnLargeArrays) {
  assignment_.model.vocab_size = 80000;
  ClockedCard card([](int) { return absl::Seconds(1); });
  const auto elements = [&] {
    ComputePacer pacer(assignment_.device, clock_);
    return 1 / MeasureOptimizer(assignment_, {DType::kFloat32, DType::kFloat32}, card, pacer).seconds_per_element;
  };
  const auto all = static_cast<double>(NumParameters(assignment_.model));
  ASSERT_GT(all, 1 << 22);
  EXPECT_NEAR(elements(), all, 1e-6 * all);
  assignment_.device.memory_bytes = int64_t{10} * 16 * (1 << 20);
  EXPECT_NEAR(elements(), 1 << 20, 1);
}

TEST_F(ComputeProfilerTest, OnAStreamOneRunOfAPointIsAwaited) {
  ClockedCard card([](int) { return absl::Nanoseconds(1); });
  const ComputeProfile profile = Profile(card);
  const size_t points = profile.embedding.points.size() + profile.layer.points.size() + profile.head.points.size();
  // The whole model's tables and the part's, three units' first calls, what attention runs on and the optimizer; of a point three
  // waits for its bytes and one for each series of its times; of a head's four for its bytes.
  EXPECT_EQ(card.stream().looks(), static_cast<int>(7 + 6 * points + profile.head.points.size()));
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

// A launch is long beside what a host is late that has nothing else to do.
class DeclaredPartsTest : public ComputeProfilerTest {
 protected:
  DeclaredPartsTest() {
    Emulate(kFlopsPerSecond);
    assignment_.device.launch = absl::Seconds(kLaunchSeconds);
  }
  // Of so many instructions.
  void ExpectDeclared(double seconds, int instructions, double flops) const {
    const double declared = instructions * kLaunchSeconds + flops / kFlopsPerSecond;
    EXPECT_GE(seconds, declared * (1 - 1e-6));
    EXPECT_LE(seconds, declared * (1 + 1e-6) + lateness_seconds_);
  }
  static constexpr double kFlopsPerSecond = 5e8, kLaunchSeconds = 0.02;
};

TEST_F(DeclaredPartsTest, HalvesAreOfTheirOperators) {
  const ComputeProfile profile = Profile();
  for (const auto& [unit, kind] : {std::pair(&profile.embedding, UnitKind::kEmbedding),
                                   std::pair(&profile.layer, UnitKind::kLayer), std::pair(&profile.head, UnitKind::kHead)}) {
    for (const ComputePoint& point : unit->points) {
      double input = 0, weight = 0;
      for (const OpCost& cost : UnitOperators(assignment_.model, kind, point.microbatch, 64, DType::kFloat32)) {
        input += cost.backward_input_flops;
        weight += cost.backward_weight_flops;
      }
      ExpectDeclared(point.backward_input_seconds, 1, input);
      ExpectDeclared(point.backward_weight_seconds, 1, weight);
    }
  }
}

// As a tensor-parallel rank runs it: a layer's passes are two instructions each, a head's forward is.
TEST_F(DeclaredPartsTest, APartIsASmallerModelsSegments) {
  assignment_.model.num_heads = assignment_.model.num_kv_heads = 8;
  const ModelShape quarter = ShapeOf(assignment_.model, ModelSlice{0, 2, 8});
  const ComputeProfile profile = Profile();
  struct Instructions {
    const UnitProfile* unit;
    UnitKind kind;
    int forward, backward;
  };
  for (const auto& [unit, kind, forward, backward] : {Instructions{&profile.embedding, UnitKind::kEmbedding, 1, 1},
                                                      {&profile.layer, UnitKind::kLayer, 2, 2},
                                                      {&profile.head, UnitKind::kHead, 2, 1}}) {
    EXPECT_EQ(unit->part, 0.25);
    for (const ComputePoint& point : unit->points) {
      ExpectDeclared(point.part_forward_seconds, forward, ForwardFlops(quarter, kind, point.microbatch, 64));
      ExpectDeclared(point.part_backward_seconds, backward, BackwardFlops(quarter, kind, point.microbatch, 64));
    }
  }
}

TEST_F(ComputeProfilerTest, AboutAQuarterIsMeasuredWhereThereArePartsToDivide) {
  const auto part = [this](int64_t kv_heads) {
    assignment_.model.num_kv_heads = kv_heads;
    const ModelSlice slice = SliceToMeasure(assignment_.model);
    return slice.whole() ? 0 : static_cast<double>(slice.end - slice.first) / static_cast<double>(slice.parts);
  };
  EXPECT_EQ(part(1), 0);
  EXPECT_EQ(part(2), 0.5);
  EXPECT_EQ(part(3), 1.0 / 3);
  EXPECT_EQ(part(4), 0.25);
  EXPECT_EQ(part(6), 2.0 / 6);
  EXPECT_EQ(part(32), 0.25);
  assignment_.model.intermediate_size = 3;
  EXPECT_EQ(part(4), 0) << "columns of the MLP cannot be dealt to four";
}

// The more a rank has of a unit, the longer it takes.
TEST_F(ComputeProfilerTest, ALargerPartTakesLonger) {
  Emulate(5e8);
  assignment_.model.num_heads = 4;
  assignment_.model.num_kv_heads = 4;
  const UnitProfile quarter = Profile().layer;
  const double late = lateness_seconds_;
  assignment_.model.num_kv_heads = 2;  // of which one is half
  const UnitProfile half = Profile().layer;
  EXPECT_EQ(quarter.part, 0.25);
  EXPECT_EQ(half.part, 0.5);
  EXPECT_LT(quarter.points[1].part_backward_seconds, half.points[1].part_backward_seconds + late);
  EXPECT_LT(half.points[1].part_backward_seconds, half.points[1].backward_seconds + lateness_seconds_);
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
    for (const ComputePoint& point : unit->points) {
      declared += point.forward_seconds + point.backward_seconds + point.backward_input_seconds + point.backward_weight_seconds +
                  point.part_forward_seconds + point.part_backward_seconds;
    }
  }
  EXPECT_LT(declared, 5.0);
  // A host that comes late repeats runs, which takes of the time for larger sizes.
  EXPECT_GE(profile.layer.points.size(), lateness_seconds_ == 0 ? 3u : 2u);
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
  EXPECT_DOUBLE_EQ(two.backward_input_seconds, 2 * one.backward_input_seconds);
  EXPECT_DOUBLE_EQ(two.part_backward_seconds, 2 * one.part_backward_seconds);
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
