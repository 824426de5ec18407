#include "worker/engine/lanes/compute_pacer.h"

#include <gtest/gtest.h>

#include "worker/engine/base/monotonic.h"

namespace motley::engine {
namespace {

DeviceDescription Emulated() {
  DeviceDescription device;
  device.flops_per_second = 1e9;
  device.launch = absl::Milliseconds(1);
  return device;
}

TEST(ComputePacer, TakesTheDeclaredTime) {
  SystemClock clock;
  ComputePacer pacer(Emulated(), clock);
  const absl::Duration begin = clock.Now();
  pacer.Begin();
  pacer.End(2e6);  // 2 ms
  EXPECT_GE(clock.Now() - begin, absl::Milliseconds(3));
  EXPECT_DOUBLE_EQ(pacer.busy_seconds(), 3e-3);
}

TEST(ComputePacer, LateRealWorkIsCountedAndMovesTheClock) {
  FakeClock clock;
  ComputePacer pacer(Emulated(), clock);
  pacer.Begin();
  clock.Advance(absl::Milliseconds(10));
  pacer.End(2e6);
  EXPECT_NEAR(pacer.lateness_seconds(), 7e-3, 1e-9);
  EXPECT_EQ(pacer.end(), clock.Now());
}

TEST(ComputePacer, StartsWhereItsInputsEndedNotWhereTheHostWokeUp) {
  FakeClock clock;
  ComputePacer pacer(Emulated(), clock);
  const absl::Duration ready = clock.Now() + absl::Milliseconds(5);
  clock.Advance(absl::Milliseconds(6));  // woken 1 ms late
  pacer.Begin(ready);
  clock.Advance(absl::Milliseconds(2));  // real work
  pacer.End(2e6);
  EXPECT_EQ(pacer.end(), ready + absl::Milliseconds(3));
  EXPECT_EQ(pacer.lateness_seconds(), 0);
}

TEST(ComputePacer, AnUndeclaredDevicePassesThrough) {
  FakeClock clock;
  ComputePacer pacer(DeviceDescription(), clock);
  pacer.Begin();
  clock.Advance(absl::Milliseconds(4));
  pacer.End(1e15);
  EXPECT_NEAR(pacer.busy_seconds(), 4e-3, 1e-9);
}

TEST(ComputePacer, BeatsDuringALongInstruction) {
  SystemClock clock;
  ComputePacer pacer(Emulated(), clock);
  int beats = 0;
  pacer.set_heartbeat([&] { ++beats; });
  pacer.Begin();
  pacer.End(350e6);
  EXPECT_GE(beats, 3);
}

TEST(ComputePacer, BeatsWhereTheHostIsLateWithEveryPiece) {
  FakeClock clock;
  for (const DeviceDescription& device : {Emulated(), DeviceDescription()}) {
    ComputePacer pacer(device, clock);
    int beats = 0;
    pacer.set_heartbeat([&] { ++beats; });
    for (int piece = 0; piece < 5; ++piece) {
      pacer.Begin();
      clock.Advance(absl::Seconds(20));
      pacer.End(2e6);
    }
    EXPECT_EQ(beats, 5);
  }
}

}  // namespace
}  // namespace motley::engine
