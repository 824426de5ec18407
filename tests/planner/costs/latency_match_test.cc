#include "planner/costs/latency_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "planner/costs/roofline.h"
#include "tests/common/base/folders.h"
#include "tests/planner/costs/costs_fixture.h"

namespace motley::planner {
namespace {

using testing::HasSubstr;

LatencyBook Book(const std::string& json) { return LatencyBook::Parse(json, "f.json").value(); }
constexpr char kSeries[] = "[[1, 0], [2, 0], [10, 20, 30], [20, 40, 60]]";

std::string At(const std::string& model, const std::string& card, const std::string& seq, const std::string& dtype) {
  return "{\"" + model + "\": {\"" + card + "\": {\"" + seq + "\": {\"" + dtype + "\": " + kSeries + "}}}}";
}

TEST(MatchLayer, ExactCurveIsTakenAsItIs) {
  const LatencyBook book = Book(At("deepspeedllama_7b", "l4", "512", "float32"));
  const LayerCurves layer = MatchLayer(KindNamed("L4"), WorkloadOf("llama-7b", DType::kFloat32), &book);
  EXPECT_FALSE(layer.provenance.estimated);
  EXPECT_EQ(layer.provenance.source, "f.json: deepspeedllama_7b/l4/512/float32");
  EXPECT_DOUBLE_EQ(layer.forward.At(2), 0.02);
}

TEST(MatchLayer, OtherSequenceKeepsTokensTogether) {
  const LatencyBook book = Book(At("deepspeedllama_7b", "l4", "512", "float32"));
  const LayerCurves layer = MatchLayer(KindNamed("L4"), WorkloadOf("llama-7b", DType::kFloat32, 1024), &book);
  EXPECT_TRUE(layer.provenance.estimated);
  EXPECT_THAT(layer.provenance.source, HasSubstr("estimated from 512 tokens"));
  EXPECT_LT(layer.provenance.low, 1);
  EXPECT_GT(layer.provenance.high, 1);
  // Twice the tokens, and attention grows with the square.
  EXPECT_GT(layer.forward.At(1), 0.0199);
  EXPECT_LT(layer.forward.At(1), 0.023);
}

TEST(MatchLayer, OtherModelScalesByItsFlops) {
  const LatencyBook book = Book(At("deepspeedllama_7b", "l4", "512", "float32"));
  const LayerCurves layer = MatchLayer(KindNamed("L4"), WorkloadOf("llama-13b", DType::kFloat32), &book);
  EXPECT_THAT(layer.provenance.source, HasSubstr("estimated from model deepspeedllama_7b"));
  EXPECT_NEAR(layer.forward.At(2) / 0.02, 317.0 / 202.0, 0.1);
}

// Which layers a model has decides, not what its family is called: Qwen 2's are Llama's but for a few biases.
TEST(MatchLayer, OtherFamiliesWithTheSameLayersAreAsNear) {
  const LatencyBook book = Book(At("deepspeedllama_7b", "l4", "512", "float32"));
  Workload workload = WorkloadOf("llama-13b", DType::kFloat32);
  const double llama = MatchLayer(KindNamed("L4"), workload, &book).provenance.high;
  workload.model.family = ModelFamily::kQwen2;
  EXPECT_EQ(MatchLayer(KindNamed("L4"), workload, &book).provenance.high, llama);
  workload.model.family = ModelFamily::kGpt2;
  EXPECT_GT(MatchLayer(KindNamed("L4"), workload, &book).provenance.high, llama);
}

TEST(MatchLayer, LikeCardScalesByItsRates) {
  const LatencyBook book = Book(At("deepspeedllama_7b", "a100x40", "512", "float16"));
  const LayerCurves layer = MatchLayer(KindNamed("A100-80GB"), WorkloadOf("llama-7b", DType::kFloat16), &book);
  EXPECT_THAT(layer.provenance.source, HasSubstr("estimated from card A100-40GB"));
  EXPECT_LE(layer.forward.At(2), 0.02);
  EXPECT_GT(layer.forward.At(2), 0.014);
}

TEST(MatchLayer, NearestOfSeveralWins) {
  LatencyBook book = Book(At("deepspeedllama_7b", "l4", "512", "float32"));
  book.Merge(Book(At("deepspeedllama_7b", "l4", "2048", "float32")));
  book.Merge(Book(At("deepspeedllama_3b", "l4", "1024", "float32")));
  const LayerCurves layer = MatchLayer(KindNamed("L4"), WorkloadOf("llama-7b", DType::kFloat32, 4096), &book);
  EXPECT_THAT(layer.provenance.source, HasSubstr("2048 tokens"));
}

TEST(MatchLayer, WithoutABookTheDataSheetAndItsFallback) {
  const LayerCurves layer = MatchLayer(KindNamed("P40"), WorkloadOf("llama-7b", DType::kBFloat16), nullptr);
  EXPECT_TRUE(layer.provenance.estimated);
  EXPECT_THAT(layer.provenance.source, HasSubstr("P40, which has no bfloat16 units"));
  EXPECT_GT(layer.forward.At(1), 0);
}

TEST(MatchLayer, ModelsWithoutAShapeAreNoHelp) {
  const LatencyBook book = Book(At("some_model", "l4", "512", "float32"));
  EXPECT_THAT(MatchLayer(KindNamed("L4"), WorkloadOf("llama-7b", DType::kFloat32), &book).provenance.source,
              HasSubstr("data sheet"));
  EXPECT_EQ(Transfer(book.entries()[0], KindNamed("L4"), WorkloadOf("llama-7b", DType::kFloat32)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(MatchLayer, TwinDTypeBeatsOtherModels) {
  LatencyBook book = Book(At("deepspeedllama_7b", "a100x80", "512", "float16"));
  book.Merge(Book(At("deepspeedllama_3b", "a100x80", "512", "bfloat16")));
  EXPECT_THAT(MatchLayer(KindNamed("A100-80GB"), WorkloadOf("llama-7b", DType::kBFloat16), &book).provenance.source,
              HasSubstr("estimated from float16 "));
}

// Every published curve is hidden in turn and estimated from the rest: the ranges that are given must hold what was measured.
TEST(MatchLayer, ConfidenceRangesHoldOnThePublishedCurves) {
  const std::string path = SourceFolder() + "/../shared/data/zorse/model_latencies.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the published latencies are not beside the project";
  const auto all = LatencyBook::Load(path);
  ASSERT_EQ(all.status(), absl::OkStatus());
  int held = 0, total = 0;
  double squares = 0;
  for (const LatencyEntry& hidden : all->entries()) {
    const ModelPreset* preset = nullptr;
    for (const ModelPreset& candidate : ModelPresets()) {
      if (candidate.profile_name == hidden.model) preset = &candidate;
    }
    if (preset == nullptr || hidden.fitted_only || !FindGpu(hidden.card).ok()) continue;
    LatencyBook rest;
    for (const LatencyEntry& entry : all->entries()) {
      if (&entry != &hidden) rest.Merge(LatencyBook::Of(entry));
    }
    const LayerCurves layer = MatchLayer(
        KindNamed(hidden.card),
        WorkloadOf(std::string(preset->name), hidden.dtype, std::min(hidden.seq_len, preset->model.max_positions)), &rest);
    ASSERT_TRUE(layer.provenance.estimated);
    const double ratio = (layer.forward.At(4) + layer.backward.At(4)) / (hidden.forward.At(4) + hidden.backward.At(4));
    held += ratio >= layer.provenance.low && ratio <= layer.provenance.high ? 1 : 0;
    squares += std::log(ratio) * std::log(ratio);
    ++total;
  }
  EXPECT_GE(held, 0.9 * total) << held << " of " << total;
  EXPECT_LT(std::sqrt(squares / total), 0.2);
  RecordProperty("held", held);
  RecordProperty("total", total);
  RecordProperty("rms", std::to_string(std::sqrt(squares / total)));
}

}  // namespace
}  // namespace motley::planner
