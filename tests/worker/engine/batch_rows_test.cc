// Batches of packed rows: what each rank of a model reads of them, on hosts and on cards that are not there.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "common/data/data_files.h"
#include "tests/common/base/temp_folder.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/rows_folder.h"
#include "worker/engine/batch_loader.h"

namespace motley::engine {
namespace {

constexpr int64_t kRowTokens = 10, kRowsOfStep = 6;

class BatchRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = folder_ / "rows";
    WriteRowsFolder(path, kRowTokens, rows_);
    auto data = Dataset::Read(*OpenData(path), path, kRowTokens, 0.1);
    ASSERT_TRUE(data.ok()) << data.status();
    data_ = std::make_unique<Dataset>(*std::move(data));
    program_.num_units = 4;
    program_.units = {0, 1, 2, 3};
    program_.microbatches = {{.samples = 2, .first = 0}, {.samples = 1, .first = 2}, {.samples = 3, .first = 3}};
  }

  static std::vector<int64_t> Samples(int64_t step, const Microbatch& microbatch) {
    std::vector<int64_t> samples;
    for (int64_t i = 0; i < microbatch.samples; ++i) samples.push_back((step * 13 + microbatch.first + i) % 60);
    return samples;
  }

  // Of a row's places its tokens, targets and whether they count; zeros behind what it has.
  struct Places {
    std::vector<int64_t> tokens, targets, trained;
    DocumentLengths lengths;
  };
  static Places PlacesOf(const TinyRow& row) {
    Places places;
    for (const TinyDocument& document : row) {
      for (size_t i = 0; i < document.tokens.size(); ++i) {
        const bool last = i + 1 == document.tokens.size();
        if (!last && document.trained[i + 1]) places.trained.push_back(static_cast<int64_t>(places.tokens.size()));
        places.tokens.push_back(document.tokens[i]);
        places.targets.push_back(last ? 0 : document.tokens[i + 1]);
      }
      places.lengths.push_back(static_cast<int32_t>(document.tokens.size()));
    }
    const auto missing = static_cast<int32_t>(kRowTokens - static_cast<int64_t>(places.tokens.size()));
    if (missing > 0) places.lengths.push_back(missing);
    places.tokens.resize(kRowTokens, 0);
    places.targets.resize(kRowTokens, 0);
    return places;
  }
  static std::vector<int64_t> Numbers(const at::Tensor& tensor) {
    const at::Tensor wide = tensor.to(at::kLong).contiguous();
    return {wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.numel()};
  }

  // `reads`: the rank has the embedding or the head.
  void ExpectIsStep(const Batch& batch, int64_t step, bool reads, bool has_head) {
    ASSERT_EQ(batch.borders.size(), program_.microbatches.size());
    for (size_t m = 0; m < program_.microbatches.size(); ++m) {
      SCOPED_TRACE(m);
      std::vector<int64_t> tokens, targets, trained;
      std::vector<DocumentLengths> lengths;
      for (const int64_t sample : Samples(step, program_.microbatches[m])) {
        const Places places = PlacesOf(rows_[static_cast<size_t>(sample)]);
        for (const int64_t place : places.trained) trained.push_back(static_cast<int64_t>(tokens.size()) + place);
        tokens.insert(tokens.end(), places.tokens.begin(), places.tokens.end());
        targets.insert(targets.end(), places.targets.begin(), places.targets.end());
        lengths.push_back(places.lengths);
      }
      ASSERT_EQ(batch.tokens[m].defined(), reads);
      ASSERT_EQ(batch.trained[m].defined(), has_head);
      if (reads) EXPECT_EQ(Numbers(batch.tokens[m]), tokens);
      if (reads) EXPECT_EQ(Numbers(batch.targets[m]), targets);
      if (has_head) EXPECT_EQ(Numbers(batch.trained[m]), trained);
      if (has_head) EXPECT_EQ(batch.TrainedTokens(static_cast<int32_t>(m)), static_cast<int64_t>(trained.size()));
      const Borders& borders = *batch.BordersOf(static_cast<int32_t>(m));
      EXPECT_EQ(borders.lengths, lengths);
      const Borders wanted = MakeBorders(lengths, at::kCPU);
      EXPECT_TRUE(at::equal(borders.cu_seqlens, wanted.cu_seqlens));
      EXPECT_TRUE(at::equal(borders.positions, wanted.positions));
    }
  }
  int64_t TrainedIn(int64_t step) const {
    int64_t trained = 0;
    for (const int64_t sample : Samples(step, {.samples = kRowsOfStep, .first = 0})) {
      trained += static_cast<int64_t>(PlacesOf(rows_[static_cast<size_t>(sample)]).trained.size());
    }
    return trained;
  }

  // On the compute lane, when its stream gets there.
  static Batch Seen(FakeCard& card, const Batch& batch) {
    Batch seen = batch;
    DeviceStream& stream = *card.StreamOf(Lane::kCompute);
    EXPECT_EQ(stream.Launch([&] {
      for (auto* tensors : {&seen.tokens, &seen.targets, &seen.trained}) {
        for (at::Tensor& tensor : *tensors) tensor = tensor.defined() ? tensor.clone() : tensor;
      }
      for (Borders& borders : seen.borders) borders = {borders.lengths, borders.cu_seqlens.clone(), borders.positions.clone()};
      return absl::OkStatus();
    }),
              absl::OkStatus());
    while (!stream.Idle()) std::this_thread::yield();
    return seen;
  }

  TempFolder folder_;
  const std::vector<TinyRow> rows_ = DrawRows(5, 70, kRowTokens);
  std::unique_ptr<Dataset> data_;
  Program program_;
};

TEST_F(BatchRowsTest, EachRankReadsWhatItsUnitsNeed) {
  struct Case {
    std::vector<int32_t> units;
    bool reads, has_head;
  };
  for (const Case& c :
       {Case{{0, 1, 2, 3}, true, true}, Case{{0, 1}, true, false}, Case{{1, 2}, false, false}, Case{{2, 3}, true, true}}) {
    program_.units = c.units;
    HostBackend host;
    FakeCard card(3);
    const auto of_host = BatchLoader::Make(*data_, program_, kRowTokens, kRowsOfStep, host, Samples);
    const auto of_card = BatchLoader::Make(*data_, program_, kRowTokens, kRowsOfStep, card, Samples);
    ASSERT_TRUE(of_host.ok() && of_card.ok());
    for (int64_t step = 0; step < 12; ++step) {
      SCOPED_TRACE(step);
      const absl::StatusOr<Batch> on_host = (*of_host)->Load(step), on_card = (*of_card)->Load(step);
      ASSERT_TRUE(on_host.ok() && on_card.ok()) << on_host.status() << on_card.status();
      ExpectIsStep(*on_host, step, c.reads, c.has_head);
      ExpectIsStep(Seen(card, *on_card), step, c.reads, c.has_head);
      EXPECT_EQ(on_host->trained_tokens, TrainedIn(step)) << "of all ranks, whatever this one's units are";
      EXPECT_EQ(on_card->trained_tokens, TrainedIn(step));
    }
  }
}

TEST_F(BatchRowsTest, ARankWithoutUnitsReadsNothing) {
  program_.units = {};
  HostBackend host;
  const auto loader = BatchLoader::Make(*data_, program_, kRowTokens, kRowsOfStep, host, Samples);
  ASSERT_TRUE(loader.ok());
  const absl::StatusOr<Batch> batch = (*loader)->Load(0);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->borders.empty());
  EXPECT_FALSE(batch->tokens[0].defined());
}

}  // namespace
}  // namespace motley::engine
