#include "coordinator/state/data_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

class DataVerdictTest : public testing::Test {
 protected:
  DataVerdictTest() {
    config_.training.seq_len = 100;
    config_.data.path = "/d/train";
    config_.data.validation_fraction = 0.1;
    config_.data.validation_samples = 4;
    report_.data = Rows();
  }
  static DataSummary Rows() {
    return {.bytes = 5000,
            .digest = "r",
            .kind = DataKind::kRows,
            .tokens = 4000,
            .rows = 60,
            .row_tokens = 100,
            .greatest_token = 200,
            .trained_tokens = 900,
            .source_bytes = 20000,
            .tokenizer = "tok"};
  }
  static DataSummary Stream() {
    return {.bytes = 40000, .digest = "s", .kind = DataKind::kStream, .tokens = 20000, .greatest_token = 255, .tokenizer = "tok"};
  }
  std::string Complaint() const { return std::string(CheckJobsData(config_, report_).message()); }

  JobConfig config_;
  StorageReport report_;
};

TEST_F(DataVerdictTest, WhatSuitsTheJobIsTaken) {
  EXPECT_EQ(Complaint(), "");
  report_.data = Stream();
  EXPECT_EQ(Complaint(), "");
  report_.data = TextSummary(20000, "t");
  EXPECT_EQ(Complaint(), "");
}

TEST_F(DataVerdictTest, CountsWhatTheDataAreMadeOf) {
  report_.data.rows = 30;
  EXPECT_THAT(Complaint(), HasSubstr("data.path '/d/train': the data has 30 rows; at least 40 are needed"));
  report_.data = Stream();
  report_.data.tokens = 500;
  EXPECT_THAT(Complaint(), HasSubstr("the data has 500 tokens; at least 4010 are needed"));
  report_.data = TextSummary(500, "t");
  EXPECT_THAT(Complaint(), HasSubstr("the data has 500 bytes; at least 4010 are needed"));
}

TEST_F(DataVerdictTest, RowsOfAnotherLengthAndTokensBeyondTheModelAreRefused) {
  config_.training.seq_len = 64;
  EXPECT_THAT(Complaint(), HasSubstr("'/d/train': its rows were made for sequences of 100 tokens, and training.seq_len is 64"));
  config_.training.seq_len = 100;
  report_.data.greatest_token = 256;
  EXPECT_THAT(Complaint(), HasSubstr("it has token 256, and the model has 256 of them (vocab_size), 0 to 255; take the tokens of "
                                     "the model's own tokenizer, or give a model of a greater vocab_size (model.config)"));
}

TEST_F(DataVerdictTest, TheWeightsTokenizerIsTheDatas) {
  config_.checkpoint.initial = "/w/Qwen";
  EXPECT_EQ(Complaint(), "") << "weights without one, or of a checkpoint";
  report_.initial_tokenizer = "tok";
  EXPECT_EQ(Complaint(), "");
  report_.initial_tokenizer = "other";
  EXPECT_THAT(Complaint(),
              HasSubstr("data.path '/d/train': its tokens are of another tokenizer (tokenizer.json with digest tok) than "
                        "the weights of checkpoint.initial '/w/Qwen' (digest other); prepare them with --tokenizer /w/Qwen"));
  EXPECT_THAT(Complaint(), HasSubstr("or set data.any_tokenizer = true"));
  report_.data.tokenizer = "";
  EXPECT_EQ(Complaint(), "") << "others' files do not say it";
  report_.data = TextSummary(20000, "t");
  EXPECT_THAT(Complaint(),
              HasSubstr("it is plain text, whose bytes would be the tokens, and the weights of checkpoint.initial '/w/Qwen' "
                        "have a tokenizer; make their tokens (motley data prepare --tokenizer /w/Qwen --out TOKENS "
                        "/d/train, or of a folder the files in it) and give TOKENS as data.path"));
  config_.data.any_tokenizer = true;
  EXPECT_EQ(Complaint(), "");
  report_.data = Rows();
  EXPECT_EQ(Complaint(), "");
}

TEST_F(DataVerdictTest, DataOfValidationsAreCheckedForThemselves) {
  config_.data.validation_path = "/d/held-out";
  EXPECT_THAT(Complaint(),
              HasSubstr("data.validation_path '/d/held-out': the nodes' workers are of a version that knows no data of"));
  report_.validation = Rows();
  report_.validation.rows = 4;
  report_.data.rows = 1;
  EXPECT_EQ(Complaint(), "") << "nothing of data.path is kept for validations";
  report_.validation.rows = 3;
  EXPECT_THAT(Complaint(), HasSubstr("data.validation_path '/d/held-out': the data has 3 rows; at least 4 are needed for "
                                     "training.seq_len 100 and 4 validation samples"));
  report_.validation.rows = 4;
  report_.validation.row_tokens = 64;
  EXPECT_THAT(Complaint(), HasSubstr("'/d/held-out': its rows were made for sequences of 64 tokens"));
  report_.validation = TextSummary(20000, "v");
  EXPECT_THAT(Complaint(), HasSubstr("'/d/held-out': data.path holds tokens of tokenizer tok and this plain text"));
  report_.validation = Stream();
  EXPECT_EQ(Complaint(), "") << "rows and a stream of one tokenizer";
  report_.validation.tokenizer = "other";
  EXPECT_THAT(Complaint(), HasSubstr("data.path holds tokens of tokenizer tok and this tokens of tokenizer other"));
}

TEST_F(DataVerdictTest, OtherDataSaysItsSizeAsPeopleCountIt) {
  StorageReport report = report_;
  DataReference reference{report.data, report.validation, NodeName("n1")};
  EXPECT_EQ(OtherData(config_, report, reference), "");
  report.data = Stream();
  EXPECT_EQ(OtherData(config_, report, reference),
            "data.path '/d/train' holds other data (20000 tokens, digest s) than on node n1 (60 rows of 100 tokens, digest r)");
  reference = {Stream(), TextSummary(10, "v"), NodeName()};
  config_.data.validation_path = "/d/v";
  EXPECT_EQ(OtherData(config_, report, reference),
            "data.validation_path '/d/v' holds other data (0 bytes, digest ) than when the job began (digest v)");
}

}  // namespace
}  // namespace motley::coordinator
