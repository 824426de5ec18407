// A job from submission to its end, over the real API and sessions; the ranks are invented.
#include "common/wire/assignment.h"
#include "tests/common/model/published_configs.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class JobLifecycle : public ClusterTest {};

TEST_F(JobLifecycle, SubmittedJobIsCheckedProfiledPlannedStartedAndFinished) {
  FakeWorker::Options two;
  two.devices = 2;
  auto n1 = Join("n1", two);
  auto n2 = Join("n2");
  v1::Job job;
  ASSERT_TRUE(Submit("a", MakeConfig(3), &job).ok());
  EXPECT_EQ(job.id(), "a");

  const auto ranks1 = n1->WaitForStart(), ranks2 = n2->WaitForStart();
  ASSERT_FALSE(ranks1.empty());
  ASSERT_FALSE(ranks2.empty());
  int64_t batch = 0;
  double share = 0;
  for (const auto& ranks : {ranks1, ranks2}) {
    for (const v1::RankAssignment& rank : ranks) {
      EXPECT_EQ(rank.job_id(), "a");
      EXPECT_EQ(rank.epoch(), 2) << "profiling took the first number";
      EXPECT_EQ(rank.data_digest(), "digest");
      EXPECT_EQ(rank.start_step(), 0);
      EXPECT_EQ(rank.data_addresses_size(), rank.device_ids_size());
      EXPECT_NE(rank.program(), "");
      EXPECT_NE(rank.evaluation_program(), "");
      EXPECT_GT(rank.predicted_step_seconds(), 0);
      EXPECT_EQ(rank.spec().checkpoint().folder(), folder_ + "/checkpoints/a");
      const auto assignment = wire::FromProto(rank);
      ASSERT_TRUE(assignment.ok()) << assignment.status();
      batch += BatchSize(*assignment);
      share += OwnedShare(*assignment);
    }
  }
  EXPECT_EQ(batch, 8);
  EXPECT_NEAR(share, 1, 1e-12);
  n1->SendAll(v1::RankEvent::KIND_READY);
  n2->SendAll(v1::RankEvent::KIND_READY);
  WaitForState("a", v1::JOB_STATE_RUNNING);
  for (int step = 1; step <= 3; ++step) {
    n2->Step(step);
    n1->Step(step);
  }
  n1->SendAll(v1::RankEvent::KIND_FINISHED);
  n2->SendAll(v1::RankEvent::KIND_FINISHED);
  job = WaitForState("a", v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.step(), 3);
  EXPECT_EQ(job.reason(), "all 3 steps are done");
  EXPECT_EQ(job.last_step().tokens_per_second(), 8 * 16 / 0.5);
  EXPECT_NEAR(job.last_step().peak_memory_share(), 0.5, 1e-6);

  int steps = 0;
  int64_t cursor = 0;
  for (const v1::JobUpdate& update : updates_) {
    EXPECT_TRUE(&update == &updates_.front() || update.cursor() > cursor);
    cursor = update.cursor();
    steps += update.has_step();
  }
  EXPECT_TRUE(updates_.front().has_job()) << "first its state";
  EXPECT_TRUE(steps == 3 || updates_.size() == 1) << steps;

  grpc::ClientContext plan_context, nodes_context;
  v1::GetPlanRequest plan_request;
  plan_request.set_job_id("a");
  v1::GetPlanResponse plan;
  ASSERT_TRUE(stub_->GetPlan(&plan_context, plan_request, &plan).ok());
  EXPECT_EQ(plan.epoch(), 2);
  EXPECT_EQ(plan.programs_size(), 3);
  v1::ListNodesResponse nodes;
  ASSERT_TRUE(stub_->ListNodes(&nodes_context, {}, &nodes).ok());
  ASSERT_EQ(nodes.nodes_size(), 2);
  EXPECT_GT(nodes.nodes(0).devices(0).measured_tokens_per_second(), 0);
  EXPECT_EQ(nodes.nodes(0).devices(0).measured_model(), "its config.json");
  EXPECT_EQ(nodes.nodes(0).devices(0).state(), "idle");
}

TEST_F(JobLifecycle, StoredProfilesAreUsedAgain) {
  auto n1 = Join("n1");
  ASSERT_TRUE(Submit("a", MakeConfig(1)).ok());
  ASSERT_EQ(n1->WaitForStart()[0].epoch(), 2);
  n1->Step(1);
  n1->SendAll(v1::RankEvent::KIND_FINISHED);
  WaitForState("a", v1::JOB_STATE_SUCCEEDED);
  ASSERT_TRUE(Submit("b", MakeConfig(1)).ok());
  v1::Job job = WaitForState("b", v1::JOB_STATE_STARTING);
  EXPECT_EQ(job.epoch(), 1) << "nothing was started before";
}

TEST_F(JobLifecycle, ATypeThatACardLacksIsRefusedByNameBeforeAnythingIsMeasured) {
  FakeWorker::Options old_card, new_card;
  old_card.compute_capability = 70;
  new_card.compute_capability = 80;
  auto n1 = Join("n1", old_card), n2 = Join("n2", new_card);
  JobConfig config = MakeConfig(1);
  config.training.mixed_precision_param = "bfloat16";
  ASSERT_TRUE(Submit("a", config).ok());
  const v1::Job job = WaitForState("a", v1::JOB_STATE_FAILED);
  EXPECT_NE(job.reason().find("bfloat16, which these devices do not have: n1/gpu0 (test, sm_70); those that have it: n2/gpu0"),
            std::string::npos)
      << job.reason();
  config.training.mixed_precision_param = "float16";
  ASSERT_TRUE(Submit("b", config).ok());
  EXPECT_EQ(n1->WaitForStart()[0].spec().training().mixed_precision_param(), "float16");
}

TEST_F(JobLifecycle, SubmitIsIdempotentAndRefusesAnotherBody) {
  v1::SubmitJobResponse first, second;
  for (v1::SubmitJobResponse* response : {&first, &second}) {
    grpc::ClientContext context;
    v1::SubmitJobRequest request;
    request.set_job_id("a");
    *request.mutable_spec() = wire::ToProto(MakeConfig(3));
    ASSERT_TRUE(stub_->SubmitJob(&context, request, response).ok());
    EXPECT_EQ(response->job().id(), "a");
  }
  EXPECT_TRUE(first.created());
  EXPECT_FALSE(second.created());
  const grpc::Status other = Submit("a", MakeConfig(4));
  EXPECT_EQ(other.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_NE(other.error_message().find("'a'"), std::string::npos);
}

TEST_F(JobLifecycle, BadRequestsNameTheField) {
  JobConfig config = MakeConfig(0);
  grpc::Status status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("training.steps"), std::string::npos) << status.error_message();
  status = Submit("Not An Id", MakeConfig(1));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("job_id"), std::string::npos);
  config = MakeConfig(1);
  config.planner.plan_json = "{";
  status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  config.planner.plan_json = std::string((1 << 20) + 1, 'x');
  status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_NE(status.error_message().find("planner.plan_json must be at most"), std::string::npos) << status.error_message();
  config.planner.plan_json = std::string(2 << 20, 'x');
  status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("larger than max"), std::string::npos)
      << "the client looks for these words: " << status.error_message();
  grpc::ClientContext context;
  v1::GetJobRequest request;
  request.set_job_id("nope");
  v1::GetJobResponse response;
  EXPECT_EQ(stub_->GetJob(&context, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(JobLifecycle, EveryProblemOfARequestIsSaidAtOnce) {
  JobConfig config = MakeConfig(0);
  config.model.config_json.clear();
  config.model.flavor = "debugg";
  config.data.path = "relative";
  config.planner.plan_json = "{";
  const std::string message = Submit("Not An Id", config).error_message();
  for (const char* part : {"job_id must be", "training.steps must be at least 1", "debugg", "data.path must be an absolute path",
                           "planner.plan_json: "}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  }
}

TEST_F(JobLifecycle, AnIdThatCommandsTakeForAFlagIsRefused) {
  for (const char* id : {"-", "-f", "--all"}) {
    const grpc::Status status = Submit(id, MakeConfig(1));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << id;
    EXPECT_NE(status.error_message().find("not with '-' first, got '" + std::string(id)), std::string::npos);
  }
  EXPECT_TRUE(Submit("a-", MakeConfig(1)).ok());
}

TEST_F(JobLifecycle, AModelThatTheEngineDoesNotTrainIsRefusedWithAllReasons) {
  JobConfig config = MakeConfig(1);
  config.model.config_json = kGemma2Config;
  const grpc::Status other = Submit("a", config);
  EXPECT_EQ(other.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(other.error_message().find("model.config_json: model_type \"gemma2\" can be planned but not trained"), 0u)
      << other.error_message();
  config.model.config_json = kMistralConfig;
  config.model.config_json.replace(config.model.config_json.find("\"mistral\""), 9, "\"llama\"");
  config.model.config_json.replace(config.model.config_json.find("\"silu\""), 6, "\"relu\"");
  config.training.seq_len = 4097;
  const grpc::Status status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const std::string message = status.error_message();
  for (const char* part : {"model.config_json: hidden_act \"relu\"", "sliding_window 4096: attention over a window"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  }
  config.training.seq_len = 4096;
  EXPECT_EQ(Submit("a", config).error_message().find("sliding_window"), std::string::npos) << "it holds every sequence";
}

TEST_F(JobLifecycle, WhatWaitsInTheHostsMemoryIsShownAsPlannedAndAsMeasured) {
  FakeWorker::Options offering;
  offering.on_hello = [](v1::Hello& hello) {
    hello.mutable_devices(0)->set_node_host_memory_bytes(int64_t{1} << 30);
    hello.mutable_devices(0)->set_host_link_bytes_per_second(1e9);
  };
  auto n1 = Join("n1", offering);
  JobConfig config = MakeConfig(1);
  config.planner.plan_json = R"({"schedule":"gpipe","pipelines":[{"stages":[{"units":[
      {"ranks":[{"device":"n1/gpu0","shard_ratio":1,"offload":["activations"]}],"microbatches":[4,4]}]}]}]})";
  const grpc::Status status = Submit("a", config);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto ranks = n1->WaitForStart();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_GT(ranks[0].planned_host_bytes(), 0);
  n1->Step(1);
  n1->SendAll(v1::RankEvent::KIND_FINISHED);
  const v1::StepRecord step = WaitForState("a", v1::JOB_STATE_SUCCEEDED).last_step();
  EXPECT_EQ(step.planned_host_memory_bytes(), ranks[0].planned_host_bytes());
  EXPECT_EQ(step.host_memory_bytes(), 1000);
}

// Before a rank starts, before anything is measured.
TEST_F(JobLifecycle, WhatTheEngineDoesNotRunIsRefusedAtSubmit) {
  JobConfig config = MakeConfig(10);
  config.planner.strategy = "cefalo";
  grpc::Status status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("did you mean 'cephalo'?"), std::string::npos) << status.error_message();
  config.planner.strategy = "cephalo";
  // Two pipelines, of which one keeps parameters on its host.
  const std::string layers = absl::StrCat("[[0,", ResolveModel(config)->num_layers - 1, "]]");
  const std::string rest = absl::StrCat(config.training.global_batch_size - 1);
  config.planner.plan_json = R"({"schedule":"1f1b","pipelines":[{"stages":[{"ministages":)" + layers + R"(,"units":[
      {"ranks":[{"device":"n1/gpu0","shard_ratio":1,"offload":["parameters"]}],"microbatches":[1]}]}]},
      {"stages":[{"ministages":)" +
                             layers + R"(,"units":[
      {"ranks":[{"device":"n2/gpu0","shard_ratio":1}],"microbatches":[)" +
                             rest + "]}]}]}]}";
  status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  config.planner.plan_json.clear();
  config.planner.pins = "n1";
  status = Submit("a", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("must be STAGE=NODE or STAGE=DEVICE"), std::string::npos) << status.error_message();
}

// A model that cannot lie in the devices' memory is refused before anybody measures it.
TEST_F(JobLifecycle, WhatCannotFitIsNotProfiled) {
  FakeWorker::Options silent;
  silent.answer_profiles = false;
  auto n1 = Join("n1", silent);
  JobConfig config = MakeConfig(5);
  config.model = {};
  config.model.name = "llama3";
  config.model.flavor = "8B";
  ASSERT_TRUE(Submit("a", config).ok());
  const v1::Job job = WaitForState("a", v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.error_code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_NE(job.reason().find("the model does not fit: its training state is 119.7 GiB"), std::string::npos) << job.reason();
  EXPECT_NE(job.reason().find("nothing was measured"), std::string::npos);
}

TEST_F(JobLifecycle, AFailureHasACodeAndTheDataASize) {
  FakeWorker::Options blind;
  blind.storage_error = "data.path '/data': no such file";
  blind.storage_error_code = static_cast<int>(absl::StatusCode::kNotFound);
  auto n1 = Join("n1", blind);
  ASSERT_TRUE(Submit("a", MakeConfig(5)).ok());
  EXPECT_EQ(WaitForState("a", v1::JOB_STATE_FAILED).error_code(), static_cast<int>(absl::StatusCode::kNotFound));
  n1.reset();
  auto n2 = Join("n2");
  ASSERT_TRUE(Submit("b", MakeConfig(5)).ok());
  ASSERT_FALSE(n2->WaitForStart().empty());
  Start();
  EXPECT_EQ(GetJob("a").error_code(), static_cast<int>(absl::StatusCode::kNotFound)) << "it is stored";
  EXPECT_EQ(GetJob("b").error_code(), 0);
  // The fake worker's text has 100000 bytes, of which a twentieth is for validation.
  EXPECT_EQ(GetJob("b").training_tokens(), (95'000 - 1) / 16 * 16);
}

TEST_F(JobLifecycle, ListsByStateAndNewestFirst) {
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(Submit(id, MakeConfig(5)).ok());
  ASSERT_TRUE(StopJob("b").ok());
  grpc::ClientContext queued_context, newest_context;
  v1::ListJobsRequest request;
  request.add_states(v1::JOB_STATE_STOPPED);
  v1::ListJobsResponse list;
  ASSERT_TRUE(stub_->ListJobs(&queued_context, request, &list).ok());
  ASSERT_EQ(list.jobs_size(), 1);
  EXPECT_EQ(list.jobs(0).id(), "b");
  request.clear_states();
  request.set_newest_first(true);
  ASSERT_TRUE(stub_->ListJobs(&newest_context, request, &list).ok());
  ASSERT_EQ(list.jobs_size(), 3);
  EXPECT_GE(list.jobs(0).submitted_unix_ms(), list.jobs(2).submitted_unix_ms());
}

TEST_F(JobLifecycle, APlanHasTheFieldsThatAreAskedFor) {
  auto n1 = Join("n1");
  ASSERT_TRUE(Submit("a", MakeConfig(5)).ok());
  ASSERT_FALSE(n1->WaitForStart().empty());
  auto ask = [&](const std::vector<std::string>& fields, v1::GetPlanResponse* plan) {
    grpc::ClientContext context;
    v1::GetPlanRequest request;
    request.set_job_id("a");
    for (const std::string& field : fields) request.mutable_fields()->add_paths(field);
    return stub_->GetPlan(&context, request, plan);
  };
  v1::GetPlanResponse all, some;
  ASSERT_TRUE(ask({}, &all).ok());
  EXPECT_NE(all.plan_json(), "");
  ASSERT_TRUE(ask({"explanation", "epoch"}, &some).ok());
  EXPECT_EQ(some.explanation(), all.explanation());
  EXPECT_EQ(some.epoch(), all.epoch());
  EXPECT_EQ(some.plan_json(), "");
  EXPECT_EQ(some.programs_size(), 0);
  const grpc::Status wrong = ask({"plan"}, &some);
  EXPECT_EQ(wrong.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(wrong.error_message().find("'plan'"), std::string::npos) << wrong.error_message();
}

TEST_F(JobLifecycle, TheSecondJobWaitsForTheFirst) {
  auto n1 = Join("n1");
  ASSERT_TRUE(Submit("a", MakeConfig(5)).ok());
  ASSERT_FALSE(n1->WaitForStart().empty());
  v1::Job job;
  ASSERT_TRUE(Submit("b", MakeConfig(5), &job).ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  const std::string reason = "waits for job a, which has the cluster: one job trains at a time; a has 5 of 5 steps left, about ";
  EXPECT_EQ(job.reason().rfind(reason, 0), 0u) << job.reason();
  n1->SendAll(v1::RankEvent::KIND_READY);
  n1->Step(1);
  ASSERT_TRUE(StopJob("a").ok());
  EXPECT_EQ(WaitForState("a", v1::JOB_STATE_STOPPED).reason(), "stopped by the user");
  WaitForState("b", v1::JOB_STATE_STARTING);
}

TEST_F(JobLifecycle, AFailedRankFailsTheJobWithItsWords) {
  auto n1 = Join("n1");
  ASSERT_TRUE(Submit("a", MakeConfig(5)).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  n1->SendEvent(ranks[0], v1::RankEvent::KIND_FAILED, "out of memory: 3 MiB are missing");
  const v1::Job job = WaitForState("a", v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), "the rank on n1/gpu0 failed: out of memory: 3 MiB are missing");
}

TEST_F(JobLifecycle, DifferentDataOnOneNodeFailsTheJob) {
  auto n1 = Join("n1");
  FakeWorker::Options other;
  other.data_digest = "other";
  auto n2 = Join("n2", other);
  ASSERT_TRUE(Submit("a", MakeConfig(5)).ok());
  EXPECT_NE(WaitForState("a", v1::JOB_STATE_FAILED).reason().find("node n2: data.path '/data' holds other data"),
            std::string::npos);
  EXPECT_TRUE(n1->WaitForStop(1)) << "which removes what it wrote to compare the folders";
}

TEST_F(JobLifecycle, OnlyTheNewestEpochMayPublish) {
  auto n1 = Join("n1");
  ASSERT_TRUE(Submit("a", MakeConfig(5)).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  for (const int64_t epoch : {ranks[0].epoch(), ranks[0].epoch() - 1}) {
    v1::WorkerMessage message;
    message.mutable_publish_request()->set_job_id("a");
    message.mutable_publish_request()->set_epoch(epoch);
    n1->Send(message);
    v1::PublishAnswer answer;
    ASSERT_TRUE(n1->WaitForAnswer(&answer));
    EXPECT_EQ(answer.allowed(), epoch == ranks[0].epoch()) << answer.reason();
  }
}

}  // namespace
}  // namespace motley::coordinator
