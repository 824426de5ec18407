#include "common/wire/assignment.h"

#include <gtest/gtest.h>

namespace motley::wire {
namespace {

Program SmallProgram(ProgramKind kind) {
  Program program;
  program.kind = kind;
  program.rank = 1;
  program.world = 2;
  program.num_units = 3;
  program.units = {0, 1, 2};
  program.groups = {{0, 1}};
  program.microbatches = {{4, 7}, {3, 11}};
  program.parameter_buffers = {{1000, -1}, {1000, 1}};
  program.gradient_buffers = {{1000, -1}};
  program.instructions = {{Gather{0, 0, 0}, {}}, {Forward{0, 0, 0, -1, Keep::kAll}, {0}}, {ReduceScalars{}, {1}}};
  return program;
}

RankAssignment Sample() {
  RankAssignment a;
  a.job = JobId("job-1");
  a.epoch = Epoch(5);
  a.rank = 1;
  a.devices = {DeviceId("n2/gpu1"), DeviceId("n2/gpu0")};
  a.data_addresses = {"127.0.0.1", "127.0.0.2"};
  for (const OwnedRanges& ranges : {OwnedRanges{{0, 0, 10}, {1, 10, 20}}, {{1, 0, 30}}, {{0, 0, 10}, {1, 10, 20}}})
    a.ownership.Add(ranges);
  a.program = SmallProgram(ProgramKind::kTraining);
  a.evaluation = SmallProgram(ProgramKind::kEvaluation);
  a.programs_digest = "0123abcd";
  a.predicted_step_seconds = 1.25;
  a.predicted_lanes = {{0.1, 0.2, 0.3, 0.4, 0.5}, 0.6, 0.7, 0.8, 0.9, 1.0};
  a.pipeline = 1;
  a.stage = 2;
  a.start_step = 40;
  a.resume_from = "/checkpoints/step-00000040-gen-3";
  a.model = {.family = ModelFamily::kLlama,
             .vocab_size = 256,
             .hidden_size = 64,
             .num_layers = 1,
             .num_heads = 4,
             .num_kv_heads = 2,
             .head_dim = 16,
             .intermediate_size = 128,
             .max_positions = 128,
             .norm_eps = 1e-6,
             .rope_theta = 500000,
             .tie_embeddings = false};
  a.config.training.steps = 77;
  a.data_digest = "0123";
  a.validation_digest = "4567";
  a.device.id = DeviceId("n2/gpu0");
  a.device.model = "L4";
  a.device.kind = DeviceKind::kEmulated;
  a.planned_context_bytes = int64_t{3} << 30;
  a.planned_bytes = int64_t{9} << 30;
  a.planned_host_bytes = int64_t{5} << 30;
  a.first_progress_seconds = 12;
  a.link_pairs = {{0, 1}};
  a.spared_checkpoints = {"/c/j/step-00000040-gen-3"};
  a.job_uid = JobUid(std::string(32, 'a'));
  a.owns_unnamed_checkpoints = true;
  return a;
}

TEST(WireAssignmentTest, RoundTrips) {
  const RankAssignment a = Sample();
  const auto back = FromProto(ToProto(a));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->job, a.job);
  EXPECT_EQ(back->job_uid, a.job_uid);
  EXPECT_TRUE(back->owns_unnamed_checkpoints);
  EXPECT_EQ(back->epoch, a.epoch);
  EXPECT_EQ(back->rank, a.rank);
  EXPECT_EQ(back->devices, a.devices);
  EXPECT_EQ(back->data_addresses, a.data_addresses);
  EXPECT_EQ(back->ownership, a.ownership);
  EXPECT_EQ(ToText(back->program), ToText(a.program));
  EXPECT_EQ(ToText(back->evaluation), ToText(a.evaluation));
  EXPECT_EQ(back->programs_digest, a.programs_digest);
  EXPECT_EQ(back->predicted_step_seconds, a.predicted_step_seconds);
  EXPECT_EQ(back->predicted_lanes, a.predicted_lanes);
  EXPECT_EQ(back->pipeline, a.pipeline);
  EXPECT_EQ(back->stage, a.stage);
  EXPECT_EQ(back->start_step, a.start_step);
  EXPECT_EQ(back->resume_from, a.resume_from);
  EXPECT_EQ(back->model, a.model);
  EXPECT_EQ(back->config, a.config);
  EXPECT_EQ(back->data_digest, a.data_digest);
  EXPECT_EQ(back->validation_digest, a.validation_digest);
  EXPECT_EQ(back->device, a.device);
  EXPECT_EQ(back->planned_context_bytes, a.planned_context_bytes);
  EXPECT_EQ(back->planned_bytes, a.planned_bytes);
  EXPECT_EQ(back->planned_host_bytes, a.planned_host_bytes);
  EXPECT_EQ(back->first_progress_seconds, a.first_progress_seconds);
  EXPECT_EQ(back->link_pairs, a.link_pairs);
  EXPECT_EQ(back->spared_checkpoints, a.spared_checkpoints);
  EXPECT_EQ(ToProto(*back).SerializeAsString(), ToProto(a).SerializeAsString());
}

TEST(WireAssignmentTest, AProfileAssignmentHasNoPrograms) {
  RankAssignment a = Sample();
  a.program = Program();
  a.evaluation = Program();
  const v1::RankAssignment proto = ToProto(a);
  EXPECT_EQ(proto.program(), "");
  const auto back = FromProto(proto);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->program.instructions.empty());
}

TEST(WireAssignmentTest, RefusesByFieldName) {
  const auto message = [](const v1::RankAssignment& proto) { return std::string(FromProto(proto).status().message()); };
  v1::RankAssignment proto = ToProto(Sample());
  proto.set_rank(2);
  EXPECT_EQ(message(proto), "rank must be in 0..1 (device_ids has 2), got 2");
  proto = ToProto(Sample());
  proto.set_job_uid("../../etc");
  EXPECT_EQ(message(proto), "job_uid must be 32 hexadecimal digits, or empty");
  proto = ToProto(Sample());
  proto.add_data_addresses("x");
  EXPECT_NE(message(proto).find("data_addresses"), std::string::npos);
  proto = ToProto(Sample());
  *proto.add_ownership() = proto.ownership(1);
  EXPECT_EQ(message(proto), "ownership: block 1 is there twice");
  proto = ToProto(Sample());
  proto.mutable_ownership(1)->mutable_blocks(0)->set_first(9);
  EXPECT_EQ(message(proto), "ownership: blocks 9 to 1 are not in 0..65535");
  proto = ToProto(Sample());
  proto.mutable_ownership()->RemoveLast();
  EXPECT_EQ(message(proto), "ownership: block 1 is missing");
  proto = ToProto(Sample());
  proto.add_link_pairs()->set_b(2);
  EXPECT_NE(message(proto).find("link_pairs"), std::string::npos);
  proto = ToProto(Sample());
  proto.set_device_ids(0, "n1/gpu0");
  EXPECT_NE(message(proto).find("link_pairs must be of two ranks of one node"), std::string::npos);
  proto = ToProto(Sample());
  proto.set_program("program nonsense");
  EXPECT_EQ(message(proto).rfind("program: ", 0), 0u) << message(proto);
  proto = ToProto(Sample());
  proto.set_model_config_json("{");
  EXPECT_NE(message(proto).find("model_config_json"), std::string::npos);
}

}  // namespace
}  // namespace motley::wire
