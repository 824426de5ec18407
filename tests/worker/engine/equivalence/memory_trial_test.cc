// Poplar's probing with real ranks on devices with a cap, beside what the ledger says.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/memory_shortage.h"
#include "common/model/operators.h"
#include "planner/live/memory_probe.h"
#include "planner/live/planner.h"
#include "planner/plan/each_rank.h"
#include "planner/strategies/poplar/poplar_probe.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/fake_card.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/device/host_backend.h"
#include "worker/engine/engine.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/profiler/compute_profiler.h"
#include "worker/engine/profiler/profile_time.h"

namespace motley::engine {
namespace {

class MemoryTrialTest : public testing::Test {
 protected:
  MemoryTrialTest() {
    WriteTinyText(folder_);
    job_ = Widened(MakeTinyJob(ModelFamily::kGpt2, kTinySizes[0], DType::kFloat32, folder_));
    // The engine computes logits in pieces of so many tokens. Four samples are one, so that the sizes that are measured (1 to 16)
    // say what larger ones take.
    job_.model.hidden_size /= 3, job_.model.intermediate_size /= 3, job_.model.head_dim /= 3;
    job_.config.training.seq_len = job_.model.max_positions = kHeadChunkTokens / 4;
    job_.config.training.global_batch_size = 16;
    job_.config.data.validation_fraction = 0;
    job_.config.data.validation_samples = job_.config.data.validation_interval = 0;
    input_.model = job_.model;
    input_.config = job_.config;
    input_.predicts_links = true;
    DeviceDescription& device = input_.devices.emplace_back();
    device.id = DeviceId("n0/gpu0");
    device.kind = DeviceKind::kEmulated;
    device.model = "A6000";
    device.flops_per_second = 1e12;
    input_.compute = {Measured()};
    for (ComputeProfile& each : input_.compute) each.device = device.id;
  }
  ~MemoryTrialTest() override { std::filesystem::remove_all(folder_); }

  // Each as a process of its own has it.
  std::unique_ptr<Engine> MakeEngine() {
    backend_ = std::make_unique<HostBackend>(std::make_shared<MemoryAccount>());
    return CreateEngine(host_, {.backend = backend_.get()});
  }
  // All sizes, however busy the host is: no time goes by.
  ComputeProfile Measured() const {
    HostBackend backend(std::make_shared<MemoryAccount>());
    const CountingIn counting(backend.host_account());
    const RankAssignment rank = Assigned();
    const SystemClock clock;
    const FakeClock standing;
    ComputePacer pacer(rank.device, clock);
    ProfileTime time(standing);
    return ProfileUnits(rank, backend, pacer, time);
  }
  RankAssignment Assigned() const {
    RankAssignment rank;
    rank.job = JobId("probe");
    rank.epoch = Epoch(1);
    rank.device = input_.devices[0];
    rank.devices = {rank.device.id};
    rank.data_addresses = {"127.0.0.1"};
    rank.model = input_.model;
    rank.config = input_.config;
    return rank;
  }
  planner::TrialPlan PlanOf(int64_t samples) const {
    absl::StatusOr<planner::TrialPlan> plan = planner::PlanTrial(input_, samples);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : planner::TrialPlan();
  }
  int64_t LedgerBytes(int64_t samples) const { return PlanOf(samples).memory.total(); }
  // On a device that really has `bytes`.
  absl::StatusOr<MemoryTrial> Try(int64_t samples, int64_t bytes) {
    planner::TrialPlan plan = PlanOf(samples);
    RankAssignment rank = Assigned();
    rank.config.training.global_batch_size = samples;
    rank.program = std::move(plan.program);
    rank.ownership = std::move(plan.ownership);
    rank.planned_bytes = plan.memory.total();
    rank.device.memory_bytes = bytes;
    return MakeEngine()->TryMemory(rank);
  }
  struct Probed {
    int64_t largest = 0;
    int trials = 0;
  };
  Probed Probe(int64_t bytes) {
    planner::BatchSearch search(planner::kMostProbedSamples);
    int trials = 0;
    for (int64_t samples = search.Next(); samples > 0; samples = search.Next(), ++trials) {
      const absl::StatusOr<MemoryTrial> trial = Try(samples, bytes);
      if (!trial.ok()) EXPECT_EQ(FaultOf(trial.status()), Fault::kMemory) << trial.status();
      search.Take(trial.ok());
    }
    return {search.largest(), trials};
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("memory_trial_test-" + std::to_string(getpid()));
  TinyJob job_;
  planner::PlannerInput input_;
  FakeKv kv_;
  FakeHost host_{kv_};
  std::unique_ptr<HostBackend> backend_;
};

TEST_F(MemoryTrialTest, ATrialHoldsWhatTheLedgerCounts) {
  for (const int64_t samples : {1, 6}) {
    const int64_t planned = LedgerBytes(samples);
    const absl::StatusOr<MemoryTrial> ran = Try(samples, 2 * planned);
    ASSERT_TRUE(ran.ok()) << ran.status();
    EXPECT_EQ(ran->samples, samples);
    EXPECT_GT(ran->seconds, 0);
    EXPECT_NEAR(static_cast<double>(ran->peak_bytes), static_cast<double>(planned), 0.01 * static_cast<double>(planned));
    const absl::Status full = Try(samples, planned * 9 / 10).status();
    EXPECT_EQ(FaultOf(full), Fault::kMemory) << full;
    const auto shortage = MemoryShortageOf(full);
    ASSERT_TRUE(shortage.has_value());
    EXPECT_EQ(shortage->planned_bytes, planned);
  }
}

TEST_F(MemoryTrialTest, OnStreamsItComesToItsEndAndLeavesNothing) {
  planner::TrialPlan plan = PlanOf(3);
  RankAssignment rank = Assigned();
  rank.config.training.global_batch_size = 3;
  rank.program = std::move(plan.program);
  rank.ownership = std::move(plan.ownership);
  for (const unsigned seed : {1u, 2u}) {
    FakeCard card(seed);
    const absl::StatusOr<MemoryTrial> ran = CreateEngine(host_, {.backend = &card})->TryMemory(rank);
    ASSERT_TRUE(ran.ok()) << ran.status();
    EXPECT_EQ(ran->samples, 3);
    EXPECT_EQ(card.bytes().live(), 0);
  }
}

TEST_F(MemoryTrialTest, LayersOfTheModelTakeLessAndTheLedgerSaysHowManyFit) {
  const int64_t whole = LedgerBytes(1);
  input_.model = planner::FirstLayers(job_.model, 1);
  const int64_t one = LedgerBytes(1);
  EXPECT_LT(one, whole);
  EXPECT_TRUE(Try(1, one * 102 / 100).ok());
  input_.model = job_.model;
  for (const auto& [bytes, layers] : {std::pair(whole - 1, job_.model.num_layers - 1), {one, int64_t{0}}}) {
    input_.devices[0].memory_bytes = bytes;
    const absl::StatusOr<int64_t> most = planner::MostLayers(input_);
    ASSERT_TRUE(most.ok()) << most.status();
    EXPECT_EQ(*most, layers) << bytes;
  }
}

TEST_F(MemoryTrialTest, OnTenUnlikeCardsTheLedgerIsNeverAboveWhatRunsAndLittleBelow) {
  const int64_t one = LedgerBytes(1), sample = LedgerBytes(2) - one;
  ASSERT_GT(sample, 0);
  int below = 0;
  for (int card = 0; card < 10; ++card) {
    // From one sample to a dozen, with unlike rests.
    const double samples = 1.25 + 0.13 * card * card + 0.4 * card;
    DeviceDescription& device = input_.devices[0];
    device.memory_bytes = one + static_cast<int64_t>((samples - 1) * static_cast<double>(sample));
    const planner::PoplarProbe ledger = planner::ProbeLargestBatch(
        [&](int64_t tried) { return planner::LedgerAllows(device, LedgerBytes(tried)); }, planner::kMostProbedSamples);
    const Probed probed = Probe(device.memory_bytes);
    EXPECT_LE(ledger.largest, probed.largest) << "card " << card;
    EXPECT_LE(probed.largest - ledger.largest, std::max<int64_t>(1, probed.largest / 50)) << "card " << card;
    EXPECT_LE(probed.trials, 20);
    EXPECT_GT(probed.largest, 0);
    below += ledger.largest < probed.largest;
    std::printf("card %d of %lld bytes: %lld samples ran in %d trials, the ledger allows %lld\n", card,
                static_cast<long long>(device.memory_bytes), static_cast<long long>(probed.largest), probed.trials,
                static_cast<long long>(ledger.largest));
  }
  std::printf("below on %d of 10 cards\n", below);
}

// What plans count on then is there: a job needs no correction.
TEST_F(MemoryTrialTest, OnADeviceThatHasLessThanItDeclaresAJobRunsAfterAProbe) {
  DeviceDescription& device = input_.devices[0];
  device.memory_bytes = LedgerBytes(12);
  const int64_t really = device.memory_bytes * 8 / 10;
  const Probed probed = Probe(really);
  ASSERT_GT(probed.largest, 0);
  EXPECT_TRUE(planner::LedgerAllows(device, LedgerBytes(probed.largest + 1))) << "the ledger allows more";
  for (const bool limited : {false, true}) {
    input_.compute[0].usable_bytes = limited ? LedgerBytes(probed.largest) : 0;
    const auto plan = planner::MakePlan(input_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    auto ranks = AssignmentsOf(job_.model, job_.config, plan->plan, FourSamples(plan->plan));
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    ranks->at(0).evaluation = Program();
    ranks->at(0).device.memory_bytes = really;
    const absl::Status end = TrainAndKeep(*ranks, std::nullopt).status();
    if (limited) EXPECT_TRUE(end.ok()) << end;
    int64_t peak = 0;
    planner::ForEachRank(plan->plan, [&peak](const planner::RankPlan& rank) { peak = rank.predicted.peak_bytes; });
    EXPECT_EQ(peak <= really, end.ok()) << peak << " of " << really;
  }
}

}  // namespace
}  // namespace motley::engine
