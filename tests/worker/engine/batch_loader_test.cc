#include "worker/engine/batch_loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/fault.h"
#include "common/data/data_files.h"
#include "tests/common/base/temp_folder.h"
#include "tests/worker/engine/fake_card.h"

namespace motley::engine {
namespace {

constexpr int64_t kSeqLen = 5, kGlobalBatch = 8;

class BatchLoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    text_.clear();
    for (int i = 0; i < 600; ++i) text_.push_back(static_cast<char>('!' + i * 7 % 90));
    const std::string path = folder_.Write("text.txt", text_);
    auto data = Dataset::Read(*OpenData(path), path, kSeqLen, 0.1);
    ASSERT_TRUE(data.ok()) << data.status();
    data_ = std::make_unique<Dataset>(*std::move(data));
    program_.num_units = 4;
    program_.units = {0, 1};
    program_.microbatches = {{.samples = 2, .first = 0}, {.samples = 1, .first = 2}, {.samples = 3, .first = 5}};
  }

  // Each step has other samples.
  static std::vector<int64_t> Samples(int64_t step, const Microbatch& microbatch) {
    std::vector<int64_t> samples;
    for (int64_t i = 0; i < microbatch.samples; ++i) samples.push_back((step * 13 + microbatch.first + i) % 100);
    return samples;
  }
  // What the loader is told.
  std::vector<int64_t> Say(int64_t step, const Microbatch& microbatch) {
    if (bad_.contains(step)) throw std::runtime_error("step " + std::to_string(step) + " cannot be read");
    said_ = step;
    return Samples(step, microbatch);
  }
  std::unique_ptr<BatchLoader> Make(DeviceBackend& backend) {
    auto loader = BatchLoader::Make(*data_, program_, kSeqLen, kGlobalBatch, backend,
                                    [this](int64_t step, const Microbatch& m) { return Say(step, m); });
    EXPECT_TRUE(loader.ok()) << loader.status();
    return *std::move(loader);
  }
  Batch Expected(int64_t step) {
    auto batch =
        MakeBatch(*data_, Split::kTrain, program_, kSeqLen, at::kCPU, [&](const Microbatch& m) { return Samples(step, m); });
    EXPECT_TRUE(batch.ok()) << batch.status();
    return *std::move(batch);
  }

  // What the compute lane finds in a batch when its stream gets there.
  class Seen {
   public:
    Seen(FakeCard& card, const Batch& batch) : stream_(*card.StreamOf(Lane::kCompute)) {
      EXPECT_EQ(stream_.Launch([this, batch] {
        for (const at::Tensor& tokens : batch.tokens) tokens_.push_back(tokens.clone());
        for (const at::Tensor& targets : batch.targets) targets_.push_back(targets.clone());
        return absl::OkStatus();
      }),
                absl::OkStatus());
    }
    void ExpectSame(const Batch& expected) {
      while (!stream_.Idle()) std::this_thread::yield();
      ASSERT_EQ(tokens_.size(), expected.tokens.size());
      for (size_t m = 0; m < tokens_.size(); ++m) {
        EXPECT_TRUE(at::equal(tokens_[m], expected.tokens[m])) << "microbatch " << m;
        EXPECT_TRUE(at::equal(targets_[m], expected.targets[m])) << "microbatch " << m;
      }
    }

   private:
    DeviceStream& stream_;
    std::vector<at::Tensor> tokens_, targets_;
  };

  void ExpectLoads(BatchLoader& loader, FakeCard& card, int64_t step) {
    SCOPED_TRACE(step);
    absl::StatusOr<Batch> batch = loader.Load(step);
    ASSERT_TRUE(batch.ok()) << batch.status();
    Seen(card, *batch).ExpectSame(Expected(step));
  }
  static std::string ErrorOf(BatchLoader& loader, int64_t step) {
    try {
      return std::string(loader.Load(step).status().message());
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  TempFolder folder_;
  std::string text_;
  std::unique_ptr<Dataset> data_;
  Program program_;
  std::set<int64_t> bad_;          // steps whose samples cannot be read
  std::atomic<int64_t> said_{-1};  // the last step whose samples the loader has asked for
};

TEST_F(BatchLoaderTest, ABatchIsTheTextOfItsSamples) {
  const Batch batch = Expected(2);
  ASSERT_EQ(batch.tokens.size(), 3);
  for (size_t m = 0; m < batch.tokens.size(); ++m) {
    const std::vector<int64_t> samples = Samples(2, program_.microbatches[m]);
    ASSERT_EQ(batch.tokens[m].sizes(), at::IntArrayRef({program_.microbatches[m].samples, kSeqLen}));
    ASSERT_EQ(batch.targets[m].sizes(), batch.tokens[m].sizes());
    EXPECT_TRUE(batch.tokens[m].is_contiguous() && batch.targets[m].is_contiguous());
    for (size_t s = 0; s < samples.size(); ++s) {
      for (int64_t i = 0; i < kSeqLen; ++i) {
        EXPECT_EQ(batch.tokens[m][s][i].item<int64_t>(), text_[samples[s] * kSeqLen + i]);
        EXPECT_EQ(batch.targets[m][s][i].item<int64_t>(), text_[samples[s] * kSeqLen + i + 1]);
      }
    }
  }
}

TEST_F(BatchLoaderTest, EachStepGetsItsBatch) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    FakeCard card(seed);
    const auto loader = Make(card);
    for (int64_t step = 3; step < 20; ++step) ExpectLoads(*loader, card, step);
  }
}

TEST_F(BatchLoaderTest, WhatWasMadeForAnotherStepIsThrownAway) {
  FakeCard card(1);
  const auto loader = Make(card);
  for (const int64_t step : {0, 1, 1, 7, 8, 2, 3, 0}) ExpectLoads(*loader, card, step);
}

TEST_F(BatchLoaderTest, PinnedMemoryIsNotWrittenBeforeItIsCopied) {
  FakeCard card(1);
  const auto loader = Make(card);
  ExpectLoads(*loader, card, 0);
  absl::Notification gate;
  ASSERT_EQ(card.StreamOf(Lane::kCompute)->Launch([&gate] {
    gate.WaitForNotification();
    return absl::OkStatus();
  }),
            absl::OkStatus());
  absl::StatusOr<Batch> batch = loader->Load(1);  // does not wait for the stream
  ASSERT_TRUE(batch.ok()) << batch.status();
  Seen seen(card, *batch);
  *batch = {};  // a failed step drops its batch while the copy is on its way
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(said_, 1) << "the next batch waits for the copy";
  gate.Notify();
  seen.ExpectSame(Expected(1));
  ExpectLoads(*loader, card, 2);
}

TEST_F(BatchLoaderTest, TheNextBatchIsMadeBeforeItIsAskedFor) {
  FakeCard card(1);
  const auto loader = Make(card);
  ExpectLoads(*loader, card, 0);
  for (int i = 0; i < 5000 && said_ != 1; ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(said_, 1);
}

TEST_F(BatchLoaderTest, AnErrorComesWithTheStepThatNeedsTheBatch) {
  FakeCard card(1);
  const auto loader = Make(card);
  bad_ = {2};
  ExpectLoads(*loader, card, 0);
  ExpectLoads(*loader, card, 1);
  EXPECT_EQ(ErrorOf(*loader, 2), "step 2 cannot be read");
  EXPECT_EQ(ErrorOf(*loader, 2), "step 2 cannot be read") << "made where it is asked for";
  ExpectLoads(*loader, card, 1);
  ExpectLoads(*loader, card, 5);  // instead of step 2

  HostBackend host;
  EXPECT_EQ(ErrorOf(*Make(host), 2), "step 2 cannot be read");
}

TEST_F(BatchLoaderTest, DataThatChangesEndsTheStepThatReadsItAndIsThisNodesFault) {
  HostBackend host;
  FakeCard card(1);
  for (DeviceBackend* backend : {static_cast<DeviceBackend*>(&host), static_cast<DeviceBackend*>(&card)}) {
    const auto loader = Make(*backend);
    ASSERT_TRUE(loader->Load(0).ok());
    folder_.Write("text.txt", text_ + "more");
    const absl::Status status = loader->Load(4).status();
    EXPECT_NE(status.message().find("text.txt was lengthened from 600 to 604 bytes"), std::string_view::npos) << status;
    EXPECT_EQ(FaultOf(status), Fault::kNode);
    SetUp();
  }
}

TEST_F(BatchLoaderTest, ABatchThatNobodyAsksForEndsWithItsLoader) {
  FakeCard card(1);
  {
    const auto loader = Make(card);
    EXPECT_EQ(card.bytes().live(), 1);
    ASSERT_TRUE(loader->Load(0).ok());
  }
  EXPECT_EQ(card.bytes().live(), 0);
}

TEST_F(BatchLoaderTest, AHostsBatchIsMadeWhenItIsAskedFor) {
  HostBackend host;
  const auto loader = Make(host);
  ASSERT_TRUE(loader->Load(0).ok());
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(said_, 0);
}

TEST_F(BatchLoaderTest, ARankBetweenTheEndsOfTheModelReadsNothing) {
  program_.units = {1, 2};
  FakeCard card(1);
  const auto loader = Make(card);
  EXPECT_EQ(card.bytes().live(), 0);
  const absl::StatusOr<Batch> batch = loader->Load(0);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(batch->tokens.size(), 3);
  EXPECT_FALSE(batch->tokens[0].defined() || batch->targets[2].defined());
  EXPECT_EQ(said_, -1);
}

}  // namespace
}  // namespace motley::engine
