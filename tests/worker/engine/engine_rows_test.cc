// Jobs on packed rows: plans train like one device, and what a row cannot be trained on ends the job by name.
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

TEST_F(EngineRowsTest, ARowThatIsTextTrainsLikeTheText) {
  // Every row is one document that all counts, but for its last token, which has no target.
  std::vector<TinyRow> rows = DrawRows(1, 100, config_.training.seq_len);
  for (TinyRow& row : rows) {
    TinyDocument whole;
    for (const TinyDocument& document : row)
      whole.tokens.insert(whole.tokens.end(), document.tokens.begin(), document.tokens.end());
    whole.tokens.resize(static_cast<size_t>(config_.training.seq_len), 'x');
    whole.trained.assign(whole.tokens.size(), true);
    row = {whole};
  }
  Rows(rows);
  const Outcome one = TrainOk(Assign(Llama(), {{{8}, 1.0}}));
  ASSERT_EQ(one.steps[0].size(), 6);
  EXPECT_LT(one.steps[0].back().loss, one.steps[0].front().loss);
  EXPECT_NEAR(one.steps[0].front().loss, std::log(256), 0.2) << "a mean over the tokens that count";
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
