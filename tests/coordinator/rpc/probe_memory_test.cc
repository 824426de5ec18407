// Probes of a node's memory by workers whose trials end as the test says.
#include <gmock/gmock.h>

#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

constexpr int64_t kMemory = int64_t{1} << 30;  // of a fake worker's device

class ProbeMemory : public Replan {
 protected:
  struct Probed {
    grpc::Status status;
    v1::ProbeMemoryResult result;
    std::vector<std::string> doings;
  };
  Probed Probe(const v1::ProbeMemoryRequest& request, const std::function<void()>& meanwhile = {}) {
    Probed probed;
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(60))));
    auto reader = stub_->ProbeMemory(&context, request);
    if (meanwhile) meanwhile();
    for (v1::ProbeMemoryUpdate update; reader->Read(&update);) {
      if (update.has_result()) probed.result = update.result();
      if (update.has_doing()) probed.doings.push_back(update.doing());
    }
    probed.status = reader->Finish();
    return probed;
  }
  static v1::ProbeMemoryRequest Request() {
    v1::ProbeMemoryRequest request;
    request.set_node("n1");
    request.set_model_name("tiny.json");
    request.set_model_config_json(TinyJob(1, "").model.config_json);
    request.set_seq_len(16);
    return request;
  }
  // A worker on which so many samples run.
  static FakeWorker::Options Holds(int64_t samples, int devices = 1) {
    FakeWorker::Options options;
    options.devices = devices;
    options.trial_fits = [samples](const v1::RankAssignment&, int64_t tried) { return tried <= samples; };
    return options;
  }
  v1::Device DeviceOf(const std::string& node) { return NodeOf(node).devices(0); }
  void ExpectRefused(const v1::ProbeMemoryRequest& request, grpc::StatusCode code, const std::string& words) {
    const Probed probed = Probe(request);
    EXPECT_EQ(probed.status.error_code(), code) << probed.status.error_message();
    EXPECT_THAT(probed.status.error_message(), HasSubstr(words));
  }
};

TEST_F(ProbeMemory, TheLargestThatRanIsKeptAndLimitsWhatPlansCountOn) {
  auto n1 = Join("n1", Holds(37));
  const Probed probed = Probe(Request());
  ASSERT_TRUE(probed.status.ok()) << probed.status.error_message();
  EXPECT_EQ(probed.result.node(), "n1");
  EXPECT_EQ(probed.result.model(), "tiny.json");
  EXPECT_EQ(probed.result.layers(), 2);
  ASSERT_EQ(probed.result.devices_size(), 1);
  const v1::ProbedDevice& device = probed.result.devices(0);
  EXPECT_EQ(device.device(), "n1/gpu0");
  EXPECT_EQ(device.largest_samples(), 37);
  std::vector<int64_t> tried;
  for (const v1::MemoryTrial& trial : device.trials()) {
    tried.push_back(trial.samples());
    EXPECT_EQ(trial.seconds() > 0, trial.samples() <= 37);
    if (trial.samples() == 37) EXPECT_EQ(trial.peak_bytes(), device.ledger_bytes()) << "the rank was told what is planned";
  }
  EXPECT_EQ(tried, (std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 48, 40, 36, 38, 37}));
  EXPECT_EQ(device.memory_bytes(), kMemory);
  EXPECT_TRUE(device.limited()) << "by the ledger it would hold hundreds";
  EXPECT_GT(device.ledger_bytes(), 0);
  EXPECT_EQ(device.usable_memory_bytes(), device.ledger_bytes());
  EXPECT_FALSE(probed.doings.empty());
  EXPECT_THAT(probed.doings.front(), HasSubstr("n1/gpu0: measuring its units for the ledger"));
  EXPECT_THAT(probed.doings.back(), HasSubstr("n1/gpu0: trial "));

  EXPECT_EQ(DeviceOf("n1").usable_memory_bytes(), device.ledger_bytes());
  EXPECT_EQ(DeviceOf("n1").probed_samples(), 37);
  EXPECT_EQ(DeviceOf("n1").memory_corrections(), 0);
  n1.reset();
  Start();
  n1 = Join("n1", Holds(512));
  EXPECT_EQ(DeviceOf("n1").probed_samples(), 37) << "the store has it";
  // Another probe takes no limit back: what shortages taught stands.
  const Probed again = Probe(Request());
  ASSERT_TRUE(again.status.ok()) << again.status.error_message();
  EXPECT_EQ(again.result.devices(0).largest_samples(), 512);
  EXPECT_EQ(again.result.devices(0).trials_size(), 10);
  EXPECT_FALSE(again.result.devices(0).limited());
  EXPECT_EQ(again.result.devices(0).usable_memory_bytes(), device.ledger_bytes());
  EXPECT_THAT(again.doings.front(), HasSubstr("trial 1 with 1 sample")) << "what was measured is there";
}

TEST_F(ProbeMemory, ALedgerThatAllowsNoMoreIsNoLimit) {
  // As many as fit by the ledger, which the rank is told.
  FakeWorker::Options options;
  options.trial_fits = [](const v1::RankAssignment& rank, int64_t) { return rank.planned_bytes() <= kMemory; };
  auto request = Request();
  std::string config = request.model_config_json();
  config.replace(config.find("\"n_embd\": 16"), 12, "\"n_embd\": 512");
  request.set_model_config_json(config);
  auto n1 = Join("n1", options);
  const Probed probed = Probe(request);
  ASSERT_TRUE(probed.status.ok()) << probed.status.error_message();
  const v1::ProbedDevice& device = probed.result.devices(0);
  EXPECT_GT(device.largest_samples(), 1);
  EXPECT_LE(device.trials_size(), 20);
  EXPECT_FALSE(device.limited());
  EXPECT_EQ(device.usable_memory_bytes(), 0);
  EXPECT_EQ(DeviceOf("n1").usable_memory_bytes(), 0);
}

TEST_F(ProbeMemory, SomeLayersOnEveryDeviceOneAfterTheOther) {
  std::vector<std::string> models;
  FakeWorker::Options options = Holds(3, 2);
  options.trial_fits = [&models](const v1::RankAssignment& rank, int64_t samples) {
    models.push_back(rank.model_config_json());
    return samples <= 3;
  };
  auto request = Request();
  request.set_layers(1);
  request.set_dtype("bfloat16");
  auto n1 = Join("n1", options);
  const Probed probed = Probe(request);
  ASSERT_TRUE(probed.status.ok()) << probed.status.error_message();
  EXPECT_EQ(probed.result.layers(), 1);
  ASSERT_EQ(probed.result.devices_size(), 2);
  EXPECT_EQ(probed.result.devices(1).device(), "n1/gpu1");
  EXPECT_EQ(probed.result.devices(1).largest_samples(), 3);
  ASSERT_EQ(models.size(), 8u) << "1, 2, 4 and 3 of each";
  EXPECT_THAT(models[0], HasSubstr("\"n_layer\": 1"));
  EXPECT_THAT(probed.doings.front(), HasSubstr(", then 1 device more"));
}

TEST_F(ProbeMemory, OneSampleThatDoesNotFitSaysHowManyLayersWould) {
  auto n1 = Join("n1", Holds(0));
  ExpectRefused(Request(), grpc::StatusCode::RESOURCE_EXHAUSTED,
                "one sample of tiny.json does not fit n1/gpu0: the ledger counts ");
  ExpectRefused(Request(), grpc::StatusCode::RESOURCE_EXHAUSTED, "; --layers 1 would fit by the ledger");
  auto request = Request();
  request.set_layers(1);
  ExpectRefused(request, grpc::StatusCode::RESOURCE_EXHAUSTED, "one sample of 1 of 2 layers of tiny.json does not fit");
  ExpectRefused(request, grpc::StatusCode::RESOURCE_EXHAUSTED, "not even one layer would");
  EXPECT_EQ(DeviceOf("n1").usable_memory_bytes(), 0) << "nothing is known of it";
}

TEST_F(ProbeMemory, WhatIsNoRequestIsNamed) {
  auto n1 = Join("n1", Holds(3));
  auto request = Request();
  request.set_node("n2");
  ExpectRefused(request, grpc::StatusCode::NOT_FOUND, "no node n2; `motley nodes` lists them");
  request = Request();
  request.set_model_config_json("{");
  ExpectRefused(request, grpc::StatusCode::INVALID_ARGUMENT, "tiny.json");
  request.clear_model_config_json();
  ExpectRefused(request, grpc::StatusCode::INVALID_ARGUMENT, "model_config_json is missing");
  for (const int64_t seq_len : {-1, 0, 33}) {
    request = Request();
    request.set_seq_len(seq_len);
    ExpectRefused(request, grpc::StatusCode::INVALID_ARGUMENT, "seq_len must be 1 to 32 (the longest sequence of the model)");
  }
  for (const int64_t layers : {-1, 3}) {
    request = Request();
    request.set_layers(layers);
    ExpectRefused(request, grpc::StatusCode::INVALID_ARGUMENT, "layers must be 1 to 2 (as the model has)");
  }
  request = Request();
  request.set_dtype("int8");
  ExpectRefused(request, grpc::StatusCode::INVALID_ARGUMENT, "int8");
}

TEST_F(ProbeMemory, WorkersThatCannotSayWhy) {
  FakeWorker::Options failing = Holds(3), full = Holds(3), endless = Holds(3), busy = Holds(3);
  failing.trial_error = "n2/gpu0: CUDA error";
  full.profile_error = "n3/gpu0: out of memory";
  full.profile_fault = v1::FAULT_MEMORY;
  busy.profile_error = "n5/gpu0: its card is lost";
  endless.on_hello = [](v1::Hello& hello) {
    hello.mutable_devices(0)->set_kind("cpu");
    hello.mutable_devices(0)->set_memory_bytes(0);
  };
  auto n1 = Join("n1"), n2 = Join("n2", failing), n3 = Join("n3", full), n4 = Join("n4", endless), n5 = Join("n5", busy);
  const auto expect = [this](const std::string& node, grpc::StatusCode code, const std::string& words) {
    v1::ProbeMemoryRequest request = Request();
    request.set_node(node);
    ExpectRefused(request, code, words);
  };
  expect("n1", grpc::StatusCode::FAILED_PRECONDITION, "which knows no trials; upgrade it");
  expect("n2", grpc::StatusCode::FAILED_PRECONDITION, "the trial with 1 sample failed: n2/gpu0: CUDA error");
  expect("n3", grpc::StatusCode::RESOURCE_EXHAUSTED, "not one sample of a single unit fits");
  expect("n4", grpc::StatusCode::FAILED_PRECONDITION, "n4/gpu0 declares no memory_bytes");
  expect("n5", grpc::StatusCode::FAILED_PRECONDITION, "it could not be measured: n5/gpu0: its card is lost");
}

TEST_F(ProbeMemory, ANodeThatAJobUsesIsRefused) {
  auto n1 = Join("n1", Holds(3)), n2 = Join("n2", Holds(3));
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  Train(*n1, *n2, 1);
  ExpectRefused(Request(), grpc::StatusCode::FAILED_PRECONDITION, "job a uses node n1");
}

TEST_F(ProbeMemory, AJobThatComesMeanwhileTakesTheNode) {
  FakeWorker::Options silent = Holds(3);
  silent.answer_trials = false;
  auto n1 = Join("n1", silent), n2 = Join("n2");
  const Probed probed = Probe(Request(), [&] {
    EXPECT_TRUE(n1->WaitForTrials(1));
    EXPECT_TRUE(Submit("a", MakeConfig(4)).ok());
  });
  EXPECT_EQ(probed.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(probed.status.error_message(), HasSubstr("job a takes node n1, so the probe ended"));
  EXPECT_TRUE(n1->WaitForCalledOff());
  Train(*n1, *n2, 1);
  EXPECT_EQ(DeviceOf("n1").probed_samples(), 0);
}

TEST_F(ProbeMemory, AClientThatGoesEndsItsProbe) {
  FakeWorker::Options silent = Holds(3);
  silent.answer_trials = false;
  auto n1 = Join("n1", silent);
  auto n2 = Join("n2", Holds(3));
  {
    grpc::ClientContext context;
    auto reader = stub_->ProbeMemory(&context, Request());
    EXPECT_TRUE(n1->WaitForTrials(1));
    auto other = Request();
    other.set_node("n2");
    ExpectRefused(other, grpc::StatusCode::ABORTED, "the memory of node n1 is being probed; ask again behind that");
    context.TryCancel();
    reader->Finish();
  }
  EXPECT_TRUE(n1->WaitForCalledOff());
  auto request = Request();
  request.set_node("n2");
  EXPECT_TRUE(Probe(request).status.ok()) << "at once";
}

TEST_F(ProbeMemory, AWorkerThatGoesEndsIt) {
  FakeWorker::Options silent = Holds(3);
  silent.answer_trials = false;
  auto n1 = Join("n1", silent);
  const Probed probed = Probe(Request(), [&] {
    EXPECT_TRUE(n1->WaitForTrials(1));
    n1->Drop();
  });
  EXPECT_EQ(probed.status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(probed.status.error_message(), HasSubstr("node n1 went away"));
}

}  // namespace
}  // namespace motley::coordinator
