#include "common/job/job.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "common/job/job_fields.h"

namespace motley {
namespace {

JobConfig Good() {
  JobConfig config;
  config.data.path = "/data/text";
  config.checkpoint.folder = "/checkpoints/job";
  return config;
}

std::string Complaint(const JobConfig& config) {
  const absl::Status status = Validate(config);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(JobTest, DefaultsWithPathsAreValid) { EXPECT_EQ(Complaint(Good()), ""); }

TEST(JobTest, RangesNameFieldLimitAndValue) {
  JobConfig config = Good();
  config.training.steps = 0;
  EXPECT_EQ(Complaint(config), "training.steps must be at least 1, got 0");
  config = Good();
  config.optimizer.lr = 0;
  EXPECT_EQ(Complaint(config), "optimizer.lr must be greater than 0, got 0.0");
  config = Good();
  config.optimizer.beta2 = 1;
  EXPECT_EQ(Complaint(config), "optimizer.beta2 must be less than 1, got 1.0");
  config = Good();
  config.planner.memory_reserve = 0.6;
  EXPECT_EQ(Complaint(config), "planner.memory_reserve must be at most 0.5, got 0.6");
  config = Good();
  config.training.max_norm = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Complaint(config), "training.max_norm must be a finite number, got nan");
  config = Good();
  config.lr_scheduler.decay_type = "wavy";
  EXPECT_EQ(Complaint(config), "lr_scheduler.decay_type must be one of linear, cosine, constant; got \"wavy\"");
  config = Good();
  config.data.path = "/" + std::string(4096, 'x');
  EXPECT_EQ(Complaint(config), "data.path must be at most 4096 bytes, got 4097 bytes");
  config = Good();
  config.planner.plan_json = std::string((1 << 20) + 1, 'x');
  EXPECT_EQ(Complaint(config), "planner.plan_json must be at most 1048576 bytes, got 1048577 bytes");
}

TEST(JobTest, MixedPrecisionIsAKeyOfItsOwn) {
  JobConfig config = Good();
  for (const char* half : {"float16", "bfloat16"}) {
    config.training = {};
    config.training.dtype = half;
    EXPECT_EQ(Complaint(config), "training.dtype must be one of float32, float64; got \"" + std::string(half) +
                                     "\" (the type of weights and moments; to compute in a half type set "
                                     "training.mixed_precision_param)");
    config.training = {};
    config.training.mixed_precision_param = half;
    EXPECT_EQ(Complaint(config), "");
    EXPECT_TRUE(PrecisionOf(config.training)->mixed());
    EXPECT_EQ(PrecisionOf(config.training)->master, DType::kFloat32);
    EXPECT_EQ(DTypeName(PrecisionOf(config.training)->compute), half);
    config.training.dtype = "float64";
    EXPECT_EQ(Complaint(config), "training.mixed_precision_param is '" + std::string(half) +
                                     "' and training.dtype 'float64'; mixed precision keeps its state in float32: set "
                                     "training.dtype to float32");
  }
  config.training = {};
  config.training.mixed_precision_param = "float8";
  EXPECT_EQ(Complaint(config), "training.mixed_precision_param must be one of float32, bfloat16, float16; got \"float8\"");
  config.training = {};
  config.training.mixed_precision_reduce = "bfloat16";
  EXPECT_EQ(Complaint(config),
            "training.mixed_precision_reduce must be float32; got \"bfloat16\" (a sum over microbatches and ranks in a half type "
            "loses what is small)");
  for (const char* whole : {"float32", "float64"}) {
    config.training = {};
    config.training.dtype = whole;
    EXPECT_EQ(DTypeName(PrecisionOf(config.training)->compute), whole);
    EXPECT_FALSE(PrecisionOf(config.training)->mixed());
  }
}

// Whatever the table says is a limit is refused just beyond it.
TEST(JobTest, EveryLimitOfTheTableHolds) {
  JobConfig good = Good();
  for (size_t i = 0; i < JobFields(good).size(); ++i) {
    for (const bool above : {false, true}) {
      JobConfig config = Good();
      const JobField field = JobFields(config)[i];
      const double limit = above ? field.max : field.min;
      if (std::isinf(limit)) continue;
      if (auto* const* integer = std::get_if<int64_t*>(&field.value)) {
        **integer = static_cast<int64_t>(limit) + (above ? 1 : -1);
      } else if (auto* const* number = std::get_if<double*>(&field.value)) {
        **number = limit + (above ? 1e-3 : -1e-3);
      } else {
        continue;
      }
      EXPECT_EQ(Complaint(config).rfind(field.Path() + " must be ", 0), 0u) << field.Path() << ": " << Complaint(config);
    }
  }
}

TEST(JobTest, PathsAreRequiredAndAbsolute) {
  JobConfig config = Good();
  config.data.path = "";
  EXPECT_NE(Complaint(config).find("data.path is required"), std::string::npos);
  config.data.path = "text";
  EXPECT_NE(Complaint(config).find("data.path must be an absolute path"), std::string::npos);
  config.data.path = "/data/../etc";
  EXPECT_NE(Complaint(config).find("data.path must not hold '..'"), std::string::npos);
  config.data.path = "/data\n2026 I motley: forged";
  EXPECT_NE(Complaint(config).find("data.path must not hold control characters, got '/data\\n2026"), std::string::npos);
  config = Good();
  config.data.validation_path = "held-out";
  EXPECT_NE(Complaint(config).find("data.validation_path must be an absolute path"), std::string::npos);
  config.data.validation_path = "/held-out";
  EXPECT_EQ(Complaint(config), "");
  config = Good();
  config.checkpoint.folder = "";
  EXPECT_EQ(Complaint(config), "") << "on the disks of the nodes that train";
  config.checkpoint.keep_latest_k = 33;
  EXPECT_NE(Complaint(config).find("checkpoint.keep_latest_k must be at most 32 on the nodes' own disks"), std::string::npos);
  config.checkpoint.keep_latest_k = 2;
  config.checkpoint.storage = "shared";
  EXPECT_NE(Complaint(config).find("checkpoint.folder is required"), std::string::npos);
}

TEST(JobTest, WhoNamesAFolderHasOneThatAllShare) {
  CheckpointSection checkpoint;
  EXPECT_EQ(Decided(checkpoint).storage, "local");
  checkpoint.folder = "/shared";
  EXPECT_EQ(Decided(checkpoint).storage, "shared");
  checkpoint.storage = "local";
  EXPECT_EQ(Decided(checkpoint), checkpoint) << "what was said is not changed";
}

TEST(JobTest, CombinationsWithTheModel) {
  JobConfig config = Good();
  config.training.seq_len = 100000;
  EXPECT_NE(Complaint(config).find("training.seq_len must be at most"), std::string::npos);
  config = Good();
  config.model.flavor = "debgu";
  EXPECT_NE(Complaint(config).find("model.flavor 'debgu'"), std::string::npos);
  config = Good();
  config.model.config = "/somewhere/config.json";
  EXPECT_NE(Complaint(config).find("model.config_json"), std::string::npos);
  ModelShape shape = *ResolveModel(Good());
  shape.vocab_size = 100;
  config.model.config_json = ToHfConfig(shape);
  EXPECT_NE(Complaint(config).find("vocab_size must be at least 256"), std::string::npos);
  config.model.config_json = "{";
  EXPECT_NE(Complaint(config).find("/somewhere/config.json"), std::string::npos);
  config = Good();
  config.data.validation_fraction = 0;
  config.data.validation_interval = 10;
  EXPECT_NE(Complaint(config).find("data.validation_interval is 10"), std::string::npos);
  config.data.validation_path = "/held-out";
  EXPECT_EQ(Complaint(config), "") << "there is data to validate on";
  EXPECT_TRUE(HasValidation(config.data));
  config.data.validation_fraction = 0.3;
  EXPECT_EQ(ValidationFraction(config.data), 0) << "nothing of data.path is kept back";
  config.data.validation_samples = 0;
  EXPECT_FALSE(HasValidation(config.data));
}

TEST(JobTest, ConfigJsonWinsOverTheFlavor) {
  JobConfig config = Good();
  ModelShape shape = *ResolveModel(config);
  shape.num_layers = 5;
  config.model.config_json = ToHfConfig(shape);
  ASSERT_TRUE(ResolveModel(config).ok());
  EXPECT_EQ(*ResolveModel(config), shape);
}

TEST(JobTest, NamesArePrintable) {
  JobConfig config = Good();
  config.name = "an \x1b[31m escape";
  EXPECT_NE(Complaint(config).find("control characters"), std::string::npos);
  for (const char* unseen : {"\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\x8f", "\xd8\x9c", "\xc2\x9b", "\xe2\x80\x8b",
                             "\xef\xbb\xbf", "\xc2\xad", "\xe3\x85\xa4"}) {
    config.name = std::string("gpt") + unseen + "neerg";
    EXPECT_NE(Complaint(config).find("direction of writing, got 'gpt\\u"), std::string::npos) << Complaint(config);
  }
  config.name =
      "gr\xc3\xb6\xc3\x9f"
      "er";
  EXPECT_EQ(Complaint(config).find("name"), std::string::npos) << Complaint(config);
  config.name = std::string(200, 'x');
  EXPECT_NE(Complaint(config).find("at most 128 bytes"), std::string::npos);
}

TEST(LearningRateTest, WarmUpThenDecay) {
  JobConfig config;
  config.training.steps = 20;
  config.optimizer.lr = 1.0;
  config.lr_scheduler = {.warmup_steps = 4, .decay_type = "linear", .min_lr_factor = 0.2};
  EXPECT_DOUBLE_EQ(LearningRate(config, 0), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate(config, 3), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(config, 4), 1.0);  // the decay begins here, from the peak
  EXPECT_DOUBLE_EQ(LearningRate(config, 12), 0.2 + 0.8 * 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(config, 19), 0.2 + 0.8 / 16);
  EXPECT_DOUBLE_EQ(LearningRate(config, 20), 0.2);
  EXPECT_DOUBLE_EQ(LearningRate(config, 1000), 0.2);
  config.lr_scheduler.decay_type = "cosine";
  EXPECT_DOUBLE_EQ(LearningRate(config, 8), 0.2 + 0.8 * 0.5 * (1 + std::cos(std::numbers::pi / 4)));
  config.lr_scheduler.decay_type = "constant";
  EXPECT_DOUBLE_EQ(LearningRate(config, 0), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate(config, 19), 1.0);
}

TEST(LearningRateTest, NoWarmUpAndWarmUpLongerThanTheRun) {
  JobConfig config;
  config.training.steps = 4;
  config.optimizer.lr = 2.0;
  config.lr_scheduler = {.warmup_steps = 0, .decay_type = "linear", .min_lr_factor = 0};
  EXPECT_DOUBLE_EQ(LearningRate(config, 0), 2.0);
  EXPECT_DOUBLE_EQ(LearningRate(config, 3), 0.5);
  config.lr_scheduler.warmup_steps = 100;  // counts as 4
  EXPECT_DOUBLE_EQ(LearningRate(config, 0), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(config, 3), 2.0);
  EXPECT_DOUBLE_EQ(LearningRate(config, 4), 2.0);
}

}  // namespace
}  // namespace motley
