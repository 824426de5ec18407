// Ranks with cards: threads of one process, over the fake NCCL and host memory.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/worker/engine/nccl/open_fake_nccl.h"
#include "tests/worker/engine/transport/ranks.h"

namespace motley::engine {

// Keeps what it was told. Read when the ranks have ended, or by the rank's own thread.
class LoggingHost : public FakeHost {
 public:
  using FakeHost::FakeHost;
  void OnLog(const std::string& line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

// One rank of a test.
struct CardRank {
  int rank = 0;
  HostMemory memory;
  std::unique_ptr<LoggingHost> host;
  std::unique_ptr<LinkClock> links;
  absl::StatusOr<std::unique_ptr<Communicator>> connected = absl::UnknownError("not connected yet");
  Communicator& communicator() { return **connected; }
};

// The options of a rank that has a card of its own and a stream for each lane.
inline void GiveCard(CommunicatorOptions& options, HostMemory& memory) {
  static char stream;  // its work is done when it was called
  options.nccl.api = &TheFakeNccl().library.api;
  options.nccl.multiprocessors = 30 + 14 * options.rank;
  options.memory = &memory;
  options.streams.fill(&stream);
  options.device.card.uuid = "GPU-" + std::to_string(options.rank);
}

// Connects `world` ranks with cards in one group of all, unless `adjust` says otherwise, and runs body(CardRank&) on each when
// all have connected or failed to. Nothing may be left on the cards.
template <typename Body>
void WithCards(int world, Body body, const AdjustOptions& adjust = nullptr) {
  FakeKv kv;
  const int live_before = TheFakeNccl().LiveComms();
  std::latch all_are_back(world);
  OnRanks(world, [&](int rank) {
    CardRank one;
    one.rank = rank;
    one.host = std::make_unique<LoggingHost>(kv);
    one.links = *LinkClock::Map(-1);
    CommunicatorOptions options;
    options.rank = rank;
    options.groups = {EveryRank(world)};
    for (int r = 0; r < world; ++r) {
      options.devices.emplace_back("n" + std::to_string(r) + "/gpu0");
      options.data_addresses.push_back("127.0.0.1");
    }
    GiveCard(options, one.memory);
    if (adjust) adjust(options);
    one.connected = ConnectCommunicator(options, *one.host, *one.links);
    // A failure that a body plants would reach ranks that still connect.
    all_are_back.arrive_and_wait();
    body(one);
    one.connected = absl::UnknownError("over");
    EXPECT_EQ(one.memory.live(), 0);
  });
  EXPECT_EQ(TheFakeNccl().LiveComms(), live_before);
}

// Asks a communicator how it is, as an engine does whose streams are busy, and aborts it at the first error.
class HealthWatch {
 public:
  explicit HealthWatch(Communicator& communicator)
      : thread_([this, &communicator] {
          // The last look is after its end: what a call found itself, and what ended with it, is seen too.
          for (bool last = false; !last && first_error_.ok();) {
            last = over_;
            first_error_ = communicator.Health();
            absl::SleepFor(absl::Microseconds(200));
          }
          if (!first_error_.ok()) communicator.Abort(std::string(first_error_.message()));
        }) {}
  ~HealthWatch() { FirstError().IgnoreError(); }
  // Ends the watch; OK: it saw none.
  absl::Status FirstError() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    return first_error_;
  }

 private:
  std::atomic<bool> over_ = false;
  absl::Status first_error_;
  std::thread thread_;
};

}  // namespace motley::engine
