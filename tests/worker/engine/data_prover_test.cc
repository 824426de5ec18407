#include "worker/engine/data_prover.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "absl/time/clock.h"
#include "common/base/fault.h"
#include "tests/common/data/token_data.h"

namespace motley::engine {
namespace {

TEST(DataProverTest, OneRankOfEachNodeProves) {
  RankAssignment assignment;
  for (const char* device : {"n1/gpu0", "n2/gpu0", "n1/gpu1", "n2/gpu1"}) assignment.devices.emplace_back(device);
  const bool proves[] = {true, true, false, false};
  for (int rank = 0; rank < 4; ++rank) {
    assignment.rank = rank;
    EXPECT_EQ(ProvesData(assignment), proves[rank]) << rank;
  }
}

class DataProverFiles : public testing::Test {
 protected:
  Dataset Open(const std::string& name) {
    std::vector<uint16_t> tokens;
    for (uint16_t i = 0; i < 500; ++i) tokens.push_back(i);
    const std::string path = WriteStream(folder_, name, tokens);
    if (name == "bad") {
      std::fstream file(path + "/tokens.bin", std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(3).put('\x07');
    }
    auto data = Dataset::Read(*OpenData(path), path, 8, 0);
    EXPECT_TRUE(data.ok()) << data.status();
    return *std::move(data);
  }
  TempFolder folder_;
};

TEST_F(DataProverFiles, WhatIsAsItWasIsFine) {
  const Dataset one = Open("one"), other = Open("other");
  KnownParts known;
  for (const bool again : {false, true}) {
    DataProver prover({&one, &other}, &known);
    EXPECT_TRUE(prover.IsOverWithin(absl::InfiniteDuration()));
    EXPECT_EQ(prover.Found(), absl::OkStatus()) << again;
    EXPECT_EQ(prover.all_bytes(), one.BytesToProve() + other.BytesToProve());
    EXPECT_EQ(prover.bytes(), prover.all_bytes());
    EXPECT_EQ(prover.Left(), absl::ZeroDuration());
  }
}

TEST_F(DataProverFiles, OneThatDoesNotMoveSaysSo) {
  const Dataset data = Open("one");
  std::atomic<bool> goes_on{false};
  DataProver prover({&data}, nullptr, [&] {
    while (!goes_on) absl::SleepFor(absl::Milliseconds(1));
  });
  EXPECT_FALSE(prover.IsOverWithin(absl::Milliseconds(1)));
  EXPECT_EQ(prover.Left(), absl::ZeroDuration()) << "it has just begun";
  while (prover.Left() == absl::ZeroDuration()) std::this_thread::yield();
  EXPECT_EQ(prover.Left(), absl::InfiniteDuration());
  goes_on = true;
  EXPECT_TRUE(prover.IsOverWithin(absl::InfiniteDuration()));
}

TEST_F(DataProverFiles, WhatIsNotIsThisNodesFault) {
  const Dataset good = Open("good"), bad = Open("bad");
  KnownParts known;
  DataProver prover({&good, &bad}, &known);
  EXPECT_TRUE(prover.IsOverWithin(absl::InfiniteDuration()));
  const absl::Status found = prover.Found();
  EXPECT_NE(found.message().find("bad/tokens.bin is not what was prepared"), std::string_view::npos) << found;
  EXPECT_EQ(FaultOf(found), Fault::kNode);
  DataProver again({&bad}, &known);
  EXPECT_TRUE(again.IsOverWithin(absl::InfiniteDuration()));
  EXPECT_EQ(again.Found(), found) << "what is wrong is never known";
}

TEST_F(DataProverFiles, EndsWithItsJob) {
  const Dataset data = Open("one");
  for (int i = 0; i < 20; ++i) DataProver prover({&data}, nullptr);
}

}  // namespace
}  // namespace motley::engine
