#include "common/wire/job.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>

#include "common/job/job_fields.h"

namespace motley::wire {
namespace {

// A configuration in which every field differs from its default and from every other field.
JobConfig Unusual() {
  JobConfig config;
  int64_t n = 1000;
  for (const JobField& field : JobFields(config)) {
    ++n;
    if (auto* const* text = std::get_if<std::string*>(&field.value)) **text = field.Path();
    if (auto* const* integer = std::get_if<int64_t*>(&field.value)) **integer = n;
    if (auto* const* number = std::get_if<double*>(&field.value)) **number = 1.0 / static_cast<double>(n);
    if (auto* const* flag = std::get_if<bool*>(&field.value)) **flag = !**flag;
  }
  return config;
}

TEST(WireJobTest, RoundTripsEveryField) {
  const JobConfig config = Unusual();
  EXPECT_EQ(FromProto(ToProto(config)), config);
  v1::JobSpec parsed;
  ASSERT_TRUE(parsed.ParseFromString(ToProto(config).SerializeAsString()));
  EXPECT_EQ(FromProto(parsed), config);
}

TEST(WireJobTest, TypesHaveOneSpellingInside) {
  v1::JobSpec spec;
  spec.mutable_training()->set_dtype("fp32");
  spec.mutable_training()->set_mixed_precision_param("bf16");
  EXPECT_EQ(FromProto(spec).training.dtype, "float32");
  EXPECT_EQ(FromProto(spec).training.mixed_precision_param, "bfloat16");
}

TEST(WireJobTest, TableAndProtoHaveTheSameFields) {
  std::set<std::string> in_proto, in_table;
  const auto* spec = v1::JobSpec::descriptor();
  for (int i = 0; i < spec->field_count(); ++i) {
    const auto* field = spec->field(i);
    if (field->message_type() == nullptr) {
      in_proto.insert(field->name());
      continue;
    }
    for (int j = 0; j < field->message_type()->field_count(); ++j) {
      const auto* leaf = field->message_type()->field(j);
      EXPECT_TRUE(leaf->has_presence()) << leaf->full_name() << " must be optional, or its default would be zero";
      in_proto.insert(field->name() + "." + leaf->name());
    }
  }
  JobConfig config;
  for (const JobField& field : JobFields(config)) in_table.insert(field.Path());
  EXPECT_EQ(in_proto, in_table);
}

TEST(WireJobTest, AbsentMeansDefaultAndZeroMeansZero) {
  v1::JobSpec spec;
  spec.mutable_training()->set_steps(7);
  spec.mutable_training()->set_max_norm(0);
  const JobConfig config = FromProto(spec);
  EXPECT_EQ(config.training.steps, 7);
  EXPECT_EQ(config.training.max_norm, 0);
  EXPECT_EQ(config.optimizer.lr, JobConfig().optimizer.lr);
  EXPECT_EQ(FromProto(v1::JobSpec()), JobConfig());
}

TEST(WireJobTest, OneBodyPerConfiguration) {
  v1::JobSpec sparse;
  sparse.mutable_training()->set_steps(100);  // the default, said aloud
  EXPECT_EQ(ToProto(FromProto(sparse)).SerializeAsString(), ToProto(JobConfig()).SerializeAsString());
}

}  // namespace
}  // namespace motley::wire
