#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "worker/records/step_format.h"

namespace motley::worker {
namespace {

StepRecord Record() {
  StepRecord record;
  record.stats.step = 7;
  record.stats.epoch = Epoch(3);
  record.stats.loss = 2.5;
  record.unix_seconds = 1000;
  return record;
}

// The bytes that TensorBoard's own EventFileWriter writes for the same event (tensorboard 2.20.0).
TEST(TensorBoardFormat, HeadIsWhatTensorBoardItselfWrites) {
  EXPECT_EQ(absl::BytesToHexString(kTensorBoardFormat.head(7, 1000)),
            "1800000000000000a37f4b22090000000000408f401a0d627261696e2e4576656e743a3"
            "273ae6b560f000000000000006d532b09090000000000408f4010073a02080192283717");
}

TEST(TensorBoardFormat, RecordHasATagForEachValueThatTheStepHas) {
  const std::string without = kTensorBoardFormat.record(Record());
  StepRecord record = Record();
  record.stats.validation_loss = 2.75;
  record.stats.validation_bits_per_byte = 1.5;
  const std::string with = kTensorBoardFormat.record(record);
  EXPECT_NE(without.find("training/loss"), std::string::npos);
  for (const char* tag : {"training/validation_loss", "training/validation_perplexity", "training/validation_bits_per_byte"}) {
    EXPECT_EQ(without.find(tag), std::string::npos) << tag;
    EXPECT_NE(with.find(tag), std::string::npos) << tag;
  }
}

TEST(TensorBoardFormat, ANumberThatIsNotFiniteIsWrittenAsItIs) {
  StepRecord record = Record();
  record.stats.validation_loss = std::numeric_limits<double>::infinity();
  const std::string bytes = kTensorBoardFormat.record(record);
  const size_t at = bytes.find("training/validation_loss");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(bytes.find(absl::HexStringToBytes("0000807f"), at), std::string::npos) << "infinity in 32 bits";
}

TEST(TensorBoardFormat, FilesSortByGeneration) {
  EXPECT_LT(kTensorBoardFormat.file_name(Epoch(9)), kTensorBoardFormat.file_name(Epoch(10)));
  EXPECT_EQ(kTensorBoardFormat.file_name(Epoch(9)).rfind("events.out.tfevents.", 0), 0u);
}

}  // namespace
}  // namespace motley::worker
