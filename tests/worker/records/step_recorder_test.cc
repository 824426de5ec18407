#include "worker/records/step_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"

namespace motley::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StepRecorderTest : public ::testing::Test {
 protected:
  StepRecorderTest() : root_(absl::StrCat(::testing::TempDir(), "/step_recorder_", getpid(), "_", counter_++)) {
    std::filesystem::create_directories(root_);
  }
  ~StepRecorderTest() override { std::filesystem::remove_all(root_); }

  RankAssignment Assignment(const std::string& step_records, int64_t epoch = 3, int rank = 0) const {
    RankAssignment assignment;
    assignment.rank = rank;
    assignment.epoch = Epoch(epoch);
    assignment.predicted_step_seconds = 0.25;
    assignment.config.training.global_batch_size = 4;
    assignment.config.training.seq_len = 8;
    assignment.config.checkpoint.folder = root_;
    assignment.config.metrics.step_records = step_records;
    return assignment;
  }
  std::unique_ptr<StepRecorder> Recorder(const RankAssignment& assignment) {
    StepRecorder::Options options;
    options.confirm = [this](const std::string&) { return confirmed_; };
    options.log = [this](const std::string& line) { lines_.push_back(line); };
    options.pause = absl::Milliseconds(1);
    options.most_waiting = 5;
    return StepRecorder::CreateIfAsked(assignment, clock_, options);
  }
  static StepStats Step(int64_t step) { return {.step = step, .loss = 2.5, .grad_norm = 1, .lr = 1e-3, .step_seconds = 0.5}; }
  std::string Text(const std::string& name) const {
    std::ifstream file(root_ + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Waits until the thread has seen to it.
  template <typename Condition>
  static void Await(Condition condition) {
    while (!condition()) std::this_thread::yield();
  }

  inline static std::atomic<int> counter_{0};
  const std::string root_;
  FakeClock clock_;
  absl::Status confirmed_;
  std::vector<std::string> lines_;  // to be read when the recorder is gone
};

TEST_F(StepRecorderTest, OnlyRankZeroKeepsRecordsAndOnlyWhereTheJobAsks) {
  EXPECT_EQ(Recorder(Assignment("none")), nullptr);
  EXPECT_EQ(Recorder(Assignment("csv", 3, 1)), nullptr);
  RankAssignment nowhere = Assignment("csv");
  nowhere.config.checkpoint.folder.clear();
  EXPECT_EQ(Recorder(nowhere), nullptr);
  EXPECT_NE(Recorder(Assignment("csv")), nullptr);
}

TEST_F(StepRecorderTest, AnEpochWithoutStepsLeavesNothing) {
  Recorder(Assignment("csv")).reset();
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

TEST_F(StepRecorderTest, CsvHasAHeadAndALineForEachStep) {
  StepStats validated = Step(8);
  validated.validation_loss = 2.75;
  validated.validation_bits_per_byte = 1.5;
  validated.loss_scale = 4096;
  validated.skipped = true;
  auto recorder = Recorder(Assignment("csv"));
  recorder->Add(Step(7));
  recorder->Add(validated);
  recorder.reset();
  EXPECT_EQ(
      Text("steps/generation-00000003.csv"),
      "step,generation,unix_seconds,loss,validation_loss,grad_norm,lr,loss_scale,skipped,tokens,tokens_per_second,step_seconds,"
      "predicted_step_seconds,validation_perplexity,validation_bits_per_byte\n"
      "7,3,1000.0,2.5,,1.0,0.001,,,224,64.0,0.5,0.25,,\n"
      "8,3,1000.0,2.5,2.75,1.0,0.001,4096.0,1,256,64.0,0.5,0.25,15.642631884188171,1.5\n");
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(StepRecorderTest, JsonLinesHaveTheSameKeysAndNullForWhatIsNotThere) {
  auto recorder = Recorder(Assignment("jsonl"));
  recorder->Add(Step(7));
  recorder.reset();
  EXPECT_EQ(
      Text("steps/generation-00000003.jsonl"),
      "{\"step\": 7, \"generation\": 3, \"unix_seconds\": 1000.0, \"loss\": 2.5, \"validation_loss\": null, \"grad_norm\": 1.0, "
      "\"lr\": 0.001, \"loss_scale\": null, \"skipped\": null, \"tokens\": 224, \"tokens_per_second\": 64.0, \"step_seconds\": "
      "0.5, \"predicted_step_seconds\": 0.25, \"validation_perplexity\": null, \"validation_bits_per_byte\": null}\n");
}

TEST_F(StepRecorderTest, ANumberThatIsNotFiniteIsNullInJsonAndAWordInCsv) {
  StepStats step = Step(7);
  step.loss = std::numeric_limits<double>::quiet_NaN();
  step.grad_norm = std::numeric_limits<double>::infinity();
  step.validation_loss = -step.grad_norm;
  step.validation_bits_per_byte = -step.grad_norm;
  for (const char* form : {"csv", "jsonl"}) {
    auto recorder = Recorder(Assignment(form));
    recorder->Add(step);
    recorder.reset();
  }
  EXPECT_THAT(Text("steps/generation-00000003.csv"), HasSubstr("\n7,3,1000.0,nan,-inf,inf,0.001,,,224,64.0,0.5,0.25,0.0,-inf\n"));
  EXPECT_THAT(Text("steps/generation-00000003.jsonl"),
              HasSubstr("\"loss\": null, \"validation_loss\": null, \"grad_norm\": null, \"lr\": 0.001"));
}

TEST_F(StepRecorderTest, AnOlderEpochMakesNoFileOnceANewerExists) {
  confirmed_ = absl::FailedPreconditionError("this generation may not keep step records: generation 3 is not the one that runs");
  auto recorder = Recorder(Assignment("csv"));
  recorder->Add(Step(7));
  recorder.reset();
  EXPECT_TRUE(std::filesystem::is_empty(root_));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("generation 3 is not the one that runs")));
}

// A job of the same name was deleted, its folder stayed, and generations begin with 1 again: the newest file still is the last.
TEST_F(StepRecorderTest, NamesGoOnFromWhatTheFolderHolds) {
  int64_t step = 0;
  for (const int64_t epoch : {3, 6, 1, 2}) {
    auto recorder = Recorder(Assignment("jsonl", epoch));
    recorder->Add(Step(++step));
    recorder.reset();
  }
  std::ofstream(root_ + "/steps/generation-99999999.txt") << "somebody's notes";
  EXPECT_THAT(Text("steps/generation-00000003.jsonl"), HasSubstr("\"step\": 1,"));
  EXPECT_THAT(Text("steps/generation-00000006.jsonl"), HasSubstr("\"step\": 2,"));
  EXPECT_THAT(Text("steps/generation-00000007.jsonl"), AllOf(HasSubstr("\"step\": 3,"), HasSubstr("\"generation\": 1,")));
  EXPECT_THAT(Text("steps/generation-00000008.jsonl"), HasSubstr("\"step\": 4,"));
}

TEST_F(StepRecorderTest, ALinkInTheFoldersPlaceIsNotFollowed) {
  std::filesystem::create_directory(root_ + "/elsewhere");
  std::filesystem::create_directory_symlink(root_ + "/elsewhere", root_ + "/steps");
  auto recorder = Recorder(Assignment("csv"));
  recorder->Add(Step(7));
  recorder.reset();
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/elsewhere"));
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("training goes on"), HasSubstr("symbolic link")),
                                  HasSubstr("1 step record could not be")));
}

TEST_F(StepRecorderTest, WhatCannotBeWrittenNowIsWrittenLater) {
  // A file where the folder shall be.
  std::ofstream(root_ + "/steps") << "in the way";
  auto recorder = Recorder(Assignment("csv"));
  std::atomic<bool> complained{false};
  recorder->Add(Step(7));
  recorder->Add(Step(8));
  // Some attempts fail; then the way is free.
  absl::SleepFor(absl::Milliseconds(20));
  std::filesystem::remove(root_ + "/steps");
  Await([&] { return Text("steps/generation-00000003.csv").find("\n8,") != std::string::npos; });
  recorder.reset();
  EXPECT_THAT(Text("steps/generation-00000003.csv"), HasSubstr("\n7,3,"));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("step records wait, training goes on"), HasSubstr("written again")));
}

TEST_F(StepRecorderTest, WhatDoesNotFitInMemoryIsDroppedOldestFirstAndSaid) {
  absl::Notification asked, go_on;
  StepRecorder::Options options;
  options.confirm = [&](const std::string&) {
    if (!asked.HasBeenNotified()) asked.Notify();
    go_on.WaitForNotification();
    return absl::UnavailableError("the coordinator did not answer");
  };
  options.log = [this](const std::string& line) { lines_.push_back(line); };
  options.most_waiting = 5;
  auto recorder = StepRecorder::CreateIfAsked(Assignment("csv"), clock_, options);
  recorder->Add(Step(1));
  asked.WaitForNotification();
  // The thread is held; nobody else is.
  for (int step = 2; step <= 100; ++step) recorder->Add(Step(step));
  go_on.Notify();
  recorder.reset();
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("did not answer"), HasSubstr("100 step records could not be written")));
}

TEST(AppendFileTest, AfterAnErrorTheFileEndsWhereItEnded) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/append_file_", getpid());
  auto file = AppendFile::CreateNew(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(absl::IsAlreadyExists(AppendFile::CreateNew(path).status()));
  ASSERT_TRUE(file->Append("whole\n").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 10, .rlim_max = before.rlim_max};
  const auto ignored = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status full = file->Append("too long\n");
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, ignored);
  EXPECT_TRUE(absl::IsOutOfRange(full)) << full;
  EXPECT_EQ(std::filesystem::file_size(path), 6u);
  EXPECT_TRUE(file->Append("next\n").ok());
  EXPECT_EQ(std::filesystem::file_size(path), 11u);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace motley::worker
