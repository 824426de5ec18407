// Jobs on packed rows: plans train like one device, and what a row cannot be trained on ends the job by name.
#include <fstream>

#include "common/base/files.h"
#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/equivalence/sliced_job.h"
#include "tests/worker/engine/rows_folder.h"

namespace motley::engine {
namespace {

class EngineRowsTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    config_.training.steps = 6;
  }
  void Rows(const std::vector<TinyRow>& rows) {
    WriteRowsFolder(folder_ / "rows", config_.training.seq_len, rows);
    config_.data.path = (folder_ / "rows").string();
  }
  static std::vector<TinyRow> Untrained(std::vector<TinyRow> rows, size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      for (TinyDocument& document : rows[r]) document.trained.assign(document.trained.size(), false);
    }
    return rows;
  }
  std::vector<std::string> ErrorsOf(const std::vector<RankAssignment>& assignments) {
    std::vector<std::string> errors;
    for (const auto& end : Train(assignments).ends) {
      EXPECT_EQ(end.status().code(), absl::StatusCode::kFailedPrecondition) << end.status();
      errors.emplace_back(end.status().message());
    }
    return errors;
  }
};

// A row of one document has no target for its last token, and a sample of text has the next one's first: a row that is a token
// longer is the same sample. Each step has all of them, as text and rows are drawn in orders of their own.
TEST_F(EngineRowsTest, ARowThatIsTextTrainsLikeTheText) {
  const int64_t seq_len = config_.training.seq_len;
  const auto rows_of = [&](const std::string& text) {
    std::vector<TinyRow> rows;
    for (int64_t at = 0; at + seq_len < static_cast<int64_t>(text.size()); at += seq_len) {
      TinyDocument document;
      for (const char byte : text.substr(static_cast<size_t>(at), static_cast<size_t>(seq_len) + 1)) {
        document.tokens.push_back(static_cast<unsigned char>(byte));
      }
      document.trained.assign(document.tokens.size(), true);
      rows.push_back({document});
    }
    return rows;
  };
  const std::string all = ReadSmallFile(config_.data.path, 1 << 20).value();
  const std::string text = all.substr(0, 8 * static_cast<size_t>(seq_len) + 1), held_out = all.substr(1000, 500);
  std::ofstream(folder_ / "eight.txt") << text;
  std::ofstream(folder_ / "held-out.txt") << held_out;
  WriteRowsFolder(folder_ / "rows", seq_len + 1, rows_of(text));
  WriteRowsFolder(folder_ / "held-out", seq_len + 1, rows_of(held_out));
  for (const ModelShape& model : {Gpt2(), Llama()}) {
    config_.data.path = (folder_ / "eight.txt").string();
    config_.data.validation_path = (folder_ / "held-out.txt").string();
    config_.training.seq_len = seq_len;
    const Outcome by_text = TrainOk(Assign(model, {{{8}, 1.0}}));
    config_.data.path = (folder_ / "rows").string();
    config_.data.validation_path = (folder_ / "held-out").string();
    config_.training.seq_len = seq_len + 1;
    const Outcome by_rows = TrainOk(Assign(model, {{{8}, 1.0}}));
    ASSERT_EQ(by_text.steps[0].size(), 6);
    EXPECT_TRUE(by_text.steps[0].back().has_validation_loss);
    EXPECT_LT(by_text.steps[0].back().loss, by_text.steps[0].front().loss);
    EXPECT_NEAR(by_text.steps[0].front().loss, std::log(256), 0.2) << "a mean over the tokens that count";
    ExpectSameCurve(by_rows.steps[0], by_text.steps[0], 1e-10);
  }
}

TEST_F(EngineRowsTest, MicrobatchesOfWhichNothingCountsChangeNothing) {
  Rows(DrawRows(2, 120, config_.training.seq_len));
  for (const ModelShape& model : {Gpt2(), Llama()}) {
    const Outcome one = TrainOk(Assign(model, {{{8}, 1.0}}));
    const Outcome several = TrainOk(Assign(model, {{{1, 1, 1}, 0.5}, {{1, 2}, 0.3, "full"}, {{1, 1}, 0.2}}));
    ExpectSameCurve(several.steps[0], one.steps[0], 1e-10);
    EXPECT_TRUE(one.steps[0].back().has_validation_loss);
    EXPECT_EQ(one.steps[0].back().validation_bits_per_byte, std::nullopt) << "not all of a row's tokens count";
  }
}

TEST_F(EngineRowsTest, AStepInWhichNothingCountsEndsByName) {
  Rows(Untrained(DrawRows(3, 100, config_.training.seq_len), 0, 90));
  config_.data.validation_samples = 0;
  for (const std::string& error : ErrorsOf(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}))) {
    EXPECT_NE(error.find("in step"), std::string::npos) << error;
    EXPECT_NE(error.find("have no token that is trained on"), std::string::npos) << error;
    EXPECT_NE(error.find("raise training.global_batch_size"), std::string::npos) << error;
  }
}

TEST_F(EngineRowsTest, AValidationInWhichNothingCountsEndsBeforeTheFirstStep) {
  Rows(Untrained(DrawRows(4, 100, config_.training.seq_len), 95, 100));
  for (const std::string& error : ErrorsOf(Assign(Gpt2(), {{{8}, 1.0}}))) {
    EXPECT_NE(error.find("the 4 validation rows"), std::string::npos) << error;
    EXPECT_NE(error.find("raise data.validation_samples"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace motley::engine
