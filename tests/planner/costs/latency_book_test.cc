#include "planner/costs/latency_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "planner/costs/latency_match.h"
#include "tests/common/base/folders.h"
#include "tests/common/base/temp_folder.h"
#include "tests/planner/costs/costs_fixture.h"

namespace motley::planner {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr char kPublished[] = R"({
  "m": {
    "a100x40": {"512": {"float16": [[1.0, 0.5], [2.0, 1.0], [1.5, 2.5, 3.5], [3.0, 5.0, 7.0]]}},
    "l4": {"512": {"float32": [[10.0, -8.0], [20.0, 4.0]]}},
    "t4": {"512": {"float16": [10.0, 5.0]}, "1024": {"float16": 7.5}},
    "w6800": {"512": {"float16": [[1.0, 0.0], [2.0, 0.0], [1.0, 3.0, 2.0, 4.0], [2.0, 4.0, 6.0, 8.0]]}}
  }})";

std::string BookError(const std::string& json) { return std::string(LatencyBook::Parse(json, "f.json").status().message()); }

TEST(LatencyBook, SeriesAreSecondsOverSamples) {
  const auto book = LatencyBook::Parse(kPublished, "f.json");
  ASSERT_EQ(book.status(), absl::OkStatus());
  const LatencyEntry* entry = book->Find("m", "A100-40GB", 512, DType::kFloat16);
  ASSERT_NE(entry, nullptr);
  EXPECT_DOUBLE_EQ(entry->forward.At(2), 2.5e-3);
  EXPECT_DOUBLE_EQ(entry->backward.At(3), 7e-3);
  EXPECT_NEAR(entry->forward.At(10), 10.5e-3, 1e-9);
  EXPECT_EQ(entry->source, "f.json: m/a100x40/512/float16");
  EXPECT_FALSE(entry->fitted_only);
}

TEST(LatencyBook, NegativeInterceptBecomesProportional) {
  const auto book = LatencyBook::Parse(kPublished, "f.json");
  const LatencyEntry* entry = book->Find("m", "L4", 512, DType::kFloat32);
  ASSERT_NE(entry, nullptr);
  EXPECT_TRUE(entry->fitted_only);
  EXPECT_DOUBLE_EQ(entry->forward.At(1), 9.5e-3);   // (160 - 8) / 16
  EXPECT_DOUBLE_EQ(entry->forward.At(16), 152e-3);  // the fit
  EXPECT_DOUBLE_EQ(entry->backward.At(1), 24e-3);
  EXPECT_THAT(book->repairs(), Contains(HasSubstr("m/l4/512/float32/forward: negative intercept")));
}

// A list of two numbers is a fit of forward and backward together: see docs/inside/profiles.md.
TEST(LatencyBook, TotalsAreSplit) {
  const auto book = LatencyBook::Parse(kPublished, "f.json");
  const LatencyEntry* fit = book->Find("m", "T4", 512, DType::kFloat16);
  ASSERT_NE(fit, nullptr);
  EXPECT_NEAR(fit->forward.At(4) + fit->backward.At(4), 45e-3, 1e-12);
  EXPECT_NEAR(fit->forward.At(4), 0.32 * 45e-3, 1e-12);
  const LatencyEntry* scalar = book->Find("m", "T4", 1024, DType::kFloat16);
  ASSERT_NE(scalar, nullptr);
  EXPECT_NEAR(scalar->forward.At(4) + scalar->backward.At(4), 30e-3, 1e-12);
}

TEST(LatencyBook, FallingSeriesArePooledAndOutliersFlagged) {
  const auto book = LatencyBook::Parse(kPublished, "f.json");
  const LatencyEntry* entry = book->Find("m", "w6800", 512, DType::kFloat16);
  ASSERT_NE(entry, nullptr) << "an unknown card keeps its name";
  EXPECT_DOUBLE_EQ(entry->forward.At(2), 2.5e-3);
  EXPECT_DOUBLE_EQ(entry->forward.At(3), 2.5e-3);
  EXPECT_THAT(book->repairs(), Contains(HasSubstr("m/w6800/512/float16/forward: times fall")));
  EXPECT_THAT(book->repairs(), Contains(HasSubstr("far from the neighbours at batch 2, 3")));
}

TEST(LatencyBook, TwoLabelsOfOneCardAreOneEntry) {
  const auto book = LatencyBook::Parse(R"({"m": {"rtx3090": {"512": {"fp16": 2}},
      "rtx_3090": {"512": {"fp16": [[1, 0], [2, 0], [1, 2, 3], [2, 4, 6]]}}}})",
                                       "f.json");
  ASSERT_EQ(book.status(), absl::OkStatus());
  ASSERT_EQ(book->entries().size(), 1u);
  EXPECT_THAT(book->entries()[0].source, HasSubstr("rtx_3090"));
  EXPECT_THAT(book->repairs(), Contains(HasSubstr("used; the same as")));
}

TEST(LatencyBook, LaterBooksWin) {
  auto first = LatencyBook::Parse(R"({"m": {"l4": {"512": {"fp16": 2}}, "t4": {"512": {"fp16": 9}}}})", "a.json");
  auto second = LatencyBook::Parse(R"({"m": {"l4": {"512": {"fp16": 3}}}})", "b.json");
  first->Merge(*std::move(second));
  EXPECT_EQ(first->entries().size(), 2u);
  EXPECT_EQ(first->Find("m", "L4", 512, DType::kFloat16)->source, "b.json: m/l4/512/fp16");
}

TEST(LatencyBook, FindIsExact) {
  const auto book = LatencyBook::Parse(kPublished, "f.json");
  EXPECT_EQ(book->Find("m", "L4", 512, DType::kFloat16), nullptr);
  EXPECT_EQ(book->Find("m", "L4", 513, DType::kFloat32), nullptr);
  EXPECT_EQ(book->Find("n", "L4", 512, DType::kFloat32), nullptr);
}

TEST(LatencyBook, TimesInAnotherUnitAreRefused) {
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": 1e-9}}}})"), HasSubstr("m/l4/512/fp16: batch 16 takes"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": 1e12}}}})"), HasSubstr("is it in the right unit?"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": [[1, 0], [2, 0], [1e-8, 2], [2, 4]]}}}})"),
              HasSubstr("m/l4/512/fp16/forward: batch 1 takes"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": [[1, 0], [2, 0], [1, 2], [2, 4e8]]}}}})"),
              HasSubstr("m/l4/512/fp16/backward: batch 2 takes"));
}

TEST(LatencyBook, BrokenInputIsRefusedByPath) {
  EXPECT_THAT(BookError("{"), HasSubstr("f.json: is not JSON"));
  EXPECT_THAT(BookError("[1]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(BookError(R"({"m": 3})"), HasSubstr("f.json: m: must be an object by card"));
  EXPECT_THAT(BookError(R"({"m": {"l4": []}})"), HasSubstr("m/l4: must be an object by sequence"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"abc": {}}}})"), HasSubstr("'abc' is not a sequence length"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": 4}}})"), HasSubstr("m/l4/512: must be an object by dtype"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"int8": 4}}}})"), HasSubstr("dtype 'int8' is not known"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": "x"}}}})"), HasSubstr("two such fits"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": [[1, 2, 3], [1, 2]]}}}})"),
              HasSubstr("forward: a fit is [slope, intercept], got 3"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": [[1, 2], [1, 2], [1, "x"], [1, 2]]}}}})"),
              HasSubstr("must be a list of numbers, has a string"));
}

TEST(LatencyBook, TimesThatNoClockGivesAreRefused) {
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": -4}}}})"), HasSubstr("slope must be above 0"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": [1, -100]}}}})"), HasSubstr("negative at batch 16"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": [[1, 1], [1, 1], [1, -2], [1, 2]]}}}})"),
              HasSubstr("time of batch 2 must be above 0"));
  EXPECT_THAT(BookError(R"({"m": {"l4": {"512": {"fp16": [[1, 1], [1, 1], [], [1]]}}}})"), HasSubstr("0 batch sizes"));
}

TEST(LatencyBook, AFileTooLargeIsNotParsed) {
  const std::string large(static_cast<size_t>(kMostProfileBytes) + 1, ' ');
  EXPECT_THAT(BookError(large), HasSubstr("profiles have at most"));
}

TEST(LatencyBook, LoadStopsAtTheLimit) {
  const TempFolder folder;
  const std::string path = folder.path() + "/large.json";
  std::ofstream(path) << "{}";
  std::filesystem::resize_file(path, uintmax_t{1} << 30);  // sparse
  EXPECT_THAT(LatencyBook::Load(path).status().message(), HasSubstr("larger than the 67108864 bytes"));
  EXPECT_THAT(LatencyBook::Load(folder.path() + "/none.json").status().message(), HasSubstr("none.json"));
}

constexpr char kOwn[] = R"({"motley_profile": 1, "source": "measured", "layers": [
  {"model": "llama-7b", "card": "H200", "seq_len": 512, "dtype": "bfloat16", "samples": [1, 2, 4],
   "forward_seconds": [0.001, 0.0015, 0.0025], "backward_seconds": [0.002, 0.003, 0.005]}]})";

TEST(LatencyBook, ReadsOwnProfiles) {
  const auto book = LatencyBook::Parse(kOwn, "h200.json");
  ASSERT_EQ(book.status(), absl::OkStatus());
  const LatencyEntry* entry = book->Find("llama-7b", "H200", 512, DType::kBFloat16);
  ASSERT_NE(entry, nullptr);
  EXPECT_DOUBLE_EQ(entry->backward.At(3), 0.004);
  EXPECT_EQ(entry->source, "h200.json: layers[0] (llama-7b/H200/512/bfloat16)");
}

// One layer of Motley's own form, as text.
std::string Layer(const std::string& card, const std::string& samples, const std::string& seconds) {
  return R"({"model": "gpt2-124m", "card": ")" + card + R"(", "dtype": "fp16", "seq_len": 512, "samples": )" + samples +
         R"(, "forward_seconds": )" + seconds + R"(, "backward_seconds": )" + seconds + "}";
}
std::string Own(const std::string& layers) { return R"({"motley_profile": 2, "layers": [)" + layers + "]}"; }

TEST(LatencyBook, TwoEntriesOfOneKeyAreRefusedAndNamed) {
  const std::string text =
      Own(Layer("L4", "[1]", "[0.1]") + "," + Layer("T4", "[1]", "[0.1]") + "," + Layer("l4", "[1]", "[99]"));
  EXPECT_THAT(BookError(text), HasSubstr("layers[2] is of the same model, card, sequence and dtype as layers[0]"));
}

TEST(LatencyBook, AMisspelledKeyIsRefusedWithTheNearest) {
  std::string text = Own(Layer("L4", "[1]", "[0.1]"));
  text.insert(text.find("\"samples\""), "\"context_byte\": 7, ");
  EXPECT_THAT(BookError(text), HasSubstr("layers[0]: unknown key 'context_byte'; did you mean 'context_bytes'?"));
}

TEST(LatencyBook, RepairsOfOwnProfilesReachWhoUsesTheNumbers) {
  const auto book = LatencyBook::Parse(Own(Layer("L4", "[1, 2, 3]", "[0.003, 0.002, 0.004]")), "mine.json");
  ASSERT_TRUE(book.ok()) << book.status();
  EXPECT_THAT(book->repairs(), Contains(HasSubstr("mine.json: layers[0].forward_seconds: times fall")));
  EXPECT_THAT(MatchLayer(KindNamed("L4"), WorkloadOf("gpt2-124m", DType::kFloat16), &*book).provenance.repairs,
              Contains(HasSubstr("times fall")));
}

TEST(LatencyBook, MillisecondsTakenForSecondsAreDoubted) {
  const Workload workload = WorkloadOf("gpt2-124m", DType::kFloat16);
  const auto doubt = [&](const std::string& seconds) {
    const auto book = LatencyBook::Parse(Own(Layer("L4", "[8]", seconds)), "mine.json");
    return MatchLayer(KindNamed("L4"), workload, &*book).provenance.doubt;
  };
  // 8 samples of 512 tokens, 7 million parameters of a layer: 58 GFLOP, on an L4 about a millisecond.
  EXPECT_EQ(doubt("[0.002]"), "");
  EXPECT_THAT(doubt("[2]"), HasSubstr("were these milliseconds"));
}

TEST(LatencyBook, OwnProfilesAreChecked) {
  EXPECT_THAT(BookError(R"({"motley_profile": 7, "layers": []})"), HasSubstr("motley_profile must be 1 to 6"));
  EXPECT_THAT(BookError(R"({"motley_profile": 1})"), HasSubstr("layers must be a list"));
  EXPECT_THAT(BookError(R"({"motley_profile": 1, "layers": [3]})"), HasSubstr("layers[0]: must be an object"));
  EXPECT_THAT(BookError(R"({"motley_profile": 1, "layers": [{"model": "m", "card": "L4", "dtype": "fp16"}]})"),
              HasSubstr("seq_len must be"));
  EXPECT_THAT(
      BookError(R"({"motley_profile": 1, "layers": [{"model": "m", "card": "L4", "dtype": "fp16", "seq_len": 8, "samples": [2, 1],
                "forward_seconds": [1, 2], "backward_seconds": [1, 2]}]})"),
      HasSubstr("must be above 0 and rise"));
}

// Reference: the data's README: 350 curves, 146 with a negative intercept, 40 series that fall.
TEST(LatencyBook, ReadsThePublishedFiles) {
  const std::string path = SourceFolder() + "/../shared/data/zorse/model_latencies.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the published latencies are not beside the project";
  const auto book = LatencyBook::Load(path);
  ASSERT_EQ(book.status(), absl::OkStatus());
  EXPECT_EQ(book->entries().size(), 350u);
  for (const LatencyEntry& entry : book->entries()) {
    for (const Curve* curve : {&entry.forward, &entry.backward}) {
      EXPECT_TRUE(std::is_sorted(curve->ys().begin(), curve->ys().end())) << entry.source;
      EXPECT_GT(curve->ys().front(), 0) << entry.source;
      EXPECT_GT(curve->At(64), curve->At(32)) << entry.source;
    }
  }
  EXPECT_NE(book->Find("deepspeedllama_7b", "V100-16GB", 512, DType::kFloat32), nullptr);
  EXPECT_NE(book->Find("deepspeedllama_7b", "H100-NVL", 4096, DType::kFloat16), nullptr);
}

}  // namespace
}  // namespace motley::planner
