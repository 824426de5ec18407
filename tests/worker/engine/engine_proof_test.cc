// Jobs whose data are not the same on all nodes, or are altered under them: the node is to blame, the others are not, and nothing
// is saved meanwhile.
#include <fcntl.h>
#include <sys/stat.h>

#include "absl/time/clock.h"
#include "common/base/fault.h"
#include "tests/common/base/another_tick.h"
#include "tests/common/data/token_data.h"
#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/rows_folder.h"

namespace motley::engine {
namespace {

namespace fs = std::filesystem;

class EngineProofTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    config_.training.steps = 6;
    config_.checkpoint.folder = (folder_ / "checkpoints").string();
    config_.checkpoint.interval = 1'000'000;
  }
  // Two nodes, each with a copy; the second one's is for the test to damage.
  std::vector<RankAssignment> OnTwoNodes(const fs::path& data) {
    const std::string other = data.string() + "-other";
    fs::copy(data, other);
    config_.data.path = data.string();
    std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}});
    const std::string digest = Sha256Hex(TempFolder::Read(data / "tokens.json"));
    for (RankAssignment& assignment : assignments) assignment.data_digest = digest;
    assignments[1].config.data.path = other;
    return assignments;
  }
  std::vector<RankAssignment> RowsOnTwoNodes() {
    WriteRowsFolder(folder_ / "rows", config_.training.seq_len, DrawRows(2, 120, config_.training.seq_len));
    return OnTwoNodes(folder_ / "rows");
  }
  std::vector<RankAssignment> TokensOnTwoNodes() {
    std::vector<uint16_t> tokens;
    for (int i = 0; i < 4000; ++i) tokens.push_back(static_cast<uint16_t>(i * i % 251));
    (void)WriteStream(temporary_, "tokens", tokens);
    return OnTwoNodes(fs::path(temporary_ / "tokens"));
  }
  static void Overwrite(const fs::path& file, char byte) {
    const std::string bytes(fs::file_size(file), byte);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  static void ExpectTheNode(const Outcome& outcome, const std::string& file) {
    const absl::Status blamed = outcome.ends[1].status(), other = outcome.ends[0].status();
    EXPECT_EQ(FaultOf(blamed), Fault::kNode) << blamed;
    EXPECT_NE(blamed.message().find("-other/" + file + " is not what was prepared"), std::string_view::npos) << blamed;
    EXPECT_EQ(FaultOf(other), Fault::kPeer) << other;
    EXPECT_TRUE(outcome.checkpoints.empty());
  }

  TempFolder temporary_;
};

TEST_F(EngineProofTest, AMaskOfZerosIsItsNodesFault) {
  config_.data.validation_samples = 0;
  const std::vector<RankAssignment> assignments = RowsOnTwoNodes();
  const fs::path mask = folder_ / "rows-other/mask.bin";
  Overwrite(mask, '\0');
  const Outcome outcome = Train(assignments);
  ExpectTheNode(outcome, "mask.bin");
  EXPECT_TRUE(outcome.steps[0].empty()) << "no step is made of it";
}

TEST_F(EngineProofTest, AMaskThatCountsOtherwiseIsItsNodesFault) {
  config_.data.validation_samples = 0;
  const std::vector<RankAssignment> assignments = RowsOnTwoNodes();
  const fs::path mask = folder_ / "rows-other/mask.bin";
  Overwrite(mask, '\xff');
  const Outcome outcome = Train(assignments);
  ExpectTheNode(outcome, "mask.bin");
  EXPECT_TRUE(outcome.steps[0].empty());
}

TEST_F(EngineProofTest, AMaskOfZerosInTheValidationIsItsNodesFault) {
  const std::vector<RankAssignment> assignments = RowsOnTwoNodes();
  const fs::path mask = folder_ / "rows-other/mask.bin";
  // Of the last tenth, which is not trained on.
  std::fstream file(mask, std::ios::in | std::ios::out | std::ios::binary);
  const auto bytes = static_cast<int64_t>(fs::file_size(mask));
  file.seekp(bytes - bytes / 10) << std::string(static_cast<size_t>(bytes / 10), '\0');
  file.close();
  ExpectTheNode(Train(assignments), "mask.bin");
}

// As on a disk that gives other bytes at the next read, with all times as they were.
TEST_F(EngineProofTest, ADifferenceBehindTheProofIsLookedForAfresh) {
  config_.data.validation_samples = 0;
  config_.checkpoint.interval = 1;  // the proof is through after the first step
  const std::vector<RankAssignment> assignments = RowsOnTwoNodes();
  const fs::path mask = folder_ / "rows-other/mask.bin";
  const Outcome outcome = Train(assignments, [&](int rank, FakeHost& host, Engine&) {
    if (rank != 1) return;
    host.on_step = [&](const StepResult& step) {
      if (step.step != 3) return;
      struct stat before;
      EXPECT_EQ(::stat(mask.c_str(), &before), 0);
      Overwrite(mask, '\xff');
      const timespec times[2] = {before.st_atim, before.st_mtim};
      EXPECT_EQ(::utimensat(AT_FDCWD, mask.c_str(), times, 0), 0);
    };
  });
  const absl::Status blamed = outcome.ends[1].status();
  EXPECT_EQ(FaultOf(blamed), Fault::kNode) << blamed;
  EXPECT_NE(blamed.message().find("mask.bin is not what was prepared"), std::string_view::npos) << blamed;
  EXPECT_EQ(outcome.steps[0].size(), 3);
}

TEST_F(EngineProofTest, AWriteBehindWhichTheTimeWasPutBackIsFoundBeforeTheNextSave) {
  config_.checkpoint.interval = 2;
  const std::vector<RankAssignment> assignments = TokensOnTwoNodes();
  const std::string file = assignments[1].config.data.path + "/tokens.bin";
  const Outcome outcome = Train(assignments, [&](int rank, FakeHost& host, Engine&) {
    if (rank != 1) return;
    host.on_step = [&](const StepResult& step) {
      if (step.step != 3) return;
      struct stat before;
      EXPECT_EQ(::stat(file.c_str(), &before), 0);
      AwaitAnotherTick(file);
      std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(7000).put('\x01');
      const timespec times[2] = {before.st_atim, before.st_mtim};
      EXPECT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
    };
  });
  const absl::Status blamed = outcome.ends[1].status();
  EXPECT_EQ(FaultOf(blamed), Fault::kNode) << blamed;
  EXPECT_NE(blamed.message().find("tokens.bin is not what was prepared"), std::string_view::npos) << blamed;
  EXPECT_EQ(outcome.checkpoints.size(), 1) << "of step 2, before";
}

TEST_F(EngineProofTest, AnotherModeOrNameEndsNothing) {
  config_.checkpoint.interval = 2;
  const std::vector<RankAssignment> assignments = TokensOnTwoNodes();
  const std::string file = assignments[1].config.data.path + "/tokens.bin";
  std::atomic<int> proofs{0};
  const Outcome outcome = Train(
      assignments,
      [&](int rank, FakeHost& host, Engine&) {
        if (rank != 1) return;
        host.on_step = [&](const StepResult& step) {
          AwaitAnotherTick(file);
          if (step.step == 3) EXPECT_EQ(::chmod(file.c_str(), 0600), 0);
          if (step.step == 5) EXPECT_EQ(::link(file.c_str(), (file + "-too").c_str()), 0);
        };
      },
      [&](int) { return EngineOptions{.before_proof = [&proofs] { ++proofs; }}; });
  for (const auto& end : outcome.ends) EXPECT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(outcome.checkpoints.contains(6));
  EXPECT_EQ(proofs, 6) << "each node's first, and after each change";
}

TEST_F(EngineProofTest, AStopDoesNotAwaitAProofThatTakesLongerThanTheSteps) {
  const std::vector<RankAssignment> assignments = TokensOnTwoNodes();
  std::atomic<bool> said{false};
  const Outcome outcome = Train(
      assignments,
      [&](int rank, FakeHost& host, Engine& engine) {
        if (rank == 0) host.on_checkpoint_failed = [&said] { said = true; };
        host.on_step = [&engine](const StepResult& step) {
          if (step.step == 2) engine.RequestStop(/*save=*/true);
        };
      },
      [&](int) {
        return EngineOptions{.before_proof = [&said] {
          constexpr int kLongest = 20'000;
          for (int i = 0; i < kLongest && !said; ++i) absl::SleepFor(absl::Milliseconds(1));
        }};
      });
  for (const auto& end : outcome.ends) {
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(*end, RunEnd::kStopped);
  }
  EXPECT_TRUE(outcome.checkpoints.empty());
  ASSERT_EQ(outcome.failed_checkpoints.size(), 1);
  EXPECT_NE(outcome.failed_checkpoints.begin()->second.find("its data are not compared yet"), std::string::npos);
}

TEST_F(EngineProofTest, AStopAwaitsAProofThatIsNearlyThrough) {
  const std::vector<RankAssignment> assignments = TokensOnTwoNodes();
  const Outcome outcome = Train(
      assignments,
      [&](int, FakeHost& host, Engine& engine) {
        host.on_step = [&engine](const StepResult& step) {
          if (step.step == 2) engine.RequestStop(/*save=*/true);
        };
      },
      [&](int) { return EngineOptions{.before_proof = [] { absl::SleepFor(absl::Milliseconds(100)); }}; });
  for (const auto& end : outcome.ends) EXPECT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(outcome.checkpoints.size(), 1);
  EXPECT_TRUE(outcome.failed_checkpoints.empty());
}

}  // namespace
}  // namespace motley::engine
