#include "worker/engine/data_prover.h"

#include <gtest/gtest.h>

#include <fstream>

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
  DataProver prover({&one, &other});
  EXPECT_EQ(prover.Await(), absl::OkStatus());
  EXPECT_EQ(prover.Found(), absl::OkStatus());
}

TEST_F(DataProverFiles, WhatIsNotIsThisNodesFault) {
  const Dataset good = Open("good"), bad = Open("bad");
  DataProver prover({&good, &bad});
  const absl::Status found = prover.Await();
  EXPECT_NE(found.message().find("bad/tokens.bin is not what was prepared"), std::string_view::npos) << found;
  EXPECT_EQ(FaultOf(found), Fault::kNode);
  EXPECT_EQ(prover.Found(), found);
}

TEST_F(DataProverFiles, EndsWithItsJob) {
  const Dataset data = Open("one");
  for (int i = 0; i < 20; ++i) DataProver prover({&data});
}

}  // namespace
}  // namespace motley::engine
