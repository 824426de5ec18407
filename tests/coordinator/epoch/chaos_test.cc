// Random events in random order, seeded, on a clock that is turned by hand: whatever came before, a job whose cluster is well
// again goes on and ends well. No state is left without a way on, and nothing that heals ends the job.
#include <random>

#include "tests/coordinator/epoch/invented_cluster.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kSteps = 60;

class Chaos : public InventedCluster, public testing::WithParamInterface<int> {
 protected:
  Chaos() : random_(static_cast<uint32_t>(GetParam())) {
    AddJob("a", kSteps);
    for (Node& node : nodes_) Dial(node);
  }
  JobRecord& job() { return InventedCluster::job("a"); }
  // Only of jobs of which the store knows that they have trained and are not being planned: another that fails has failed.
  void RestartCoordinator() {
    const auto stored = store_->LoadJobs();
    if (!stored.ok() || stored->empty()) return;
    for (const JobRecord& job : *stored) {
      const bool has_begun = !IsFinal(job.phase) && job.phase != JobPhase::kQueued && job.phase != JobPhase::kWaiting;
      if (job.plannings_begun > 0 || (has_begun && job.step == 0 && job.phase != JobPhase::kRunning)) return;
    }
    RestartCore();
  }
  bool Chance(double share) { return std::uniform_real_distribution<double>(0, 1)(random_) < share; }

  // Nothing here is for ever, and nothing is the job's own fault.
  void Disturb() {
    Node& node = nodes_[std::uniform_int_distribution<int>(0, kNodes - 1)(random_)];
    switch (std::uniform_int_distribution<int>(0, restarts_ ? 10 : 9)(random_)) {
      case 10:
        return RestartCoordinator();
      case 0:
        return node.link == nullptr ? Dial(node) : Lose(node);
      case 1:
        return node.link == nullptr ? Dial(node, false) : Lose(node);
      case 2:
        if (node.link != nullptr) Dial(node, false);
        return;
      case 3:
        return End(node, RankEventKind::kPeerLost);
      case 4:
        return End(node, RankEventKind::kFailed, Fault::kStorage);
      case 5:
        return End(node, RankEventKind::kFailed, Fault::kPeer);
      case 6:
        return End(node, RankEventKind::kDied);
      case 7:
        return Say(node, LeavingReport{std::uniform_real_distribution<double>(0, 3)(random_)});
      case 8:
        (void)SetDrained(*core_, node.description.name, Chance(0.3));
        return;
      default:  // a worker that loses what it was sent
        if (node.link != nullptr) node.link->sent.clear();
        return;
    }
  }

  void TrainsWhenAllIsWellAgain();

  bool restarts_ = false;
  std::mt19937 random_;
};

void Chaos::TrainsWhenAllIsWellAgain() {
  while (job().step < 1) Turn();  // ranks that die in a job that never ran end it
  for (int turn = 0; turn < 600; ++turn) {
    if (Chance(0.12)) Disturb();
    Turn();
    ASSERT_NE(job().phase, JobPhase::kFailed) << "turn " << turn << ": " << job().reason;
    if (IsFinal(job().phase)) return;  // it got through
  }
  for (Node& node : nodes_) {
    // Those that never went are the ones that the others are newcomers to. Who was told to end ends.
    const bool chosen = node.link != nullptr && Chance(0.5);
    const bool stays = chosen && !core_->state.nodes.at(node.description.name).leaves_at;
    if (node.link != nullptr && !stays) Lose(node);
    (void)SetDrained(*core_, node.description.name, false);
    if (!stays) Dial(node);
    for (int turn = 0; turn < 50; ++turn) Turn();
  }
  const absl::Duration calm = clock_.Now();
  while (!IsFinal(job().phase) && clock_.Now() - calm < absl::Minutes(30)) Turn();
  EXPECT_EQ(job().phase, JobPhase::kSucceeded) << JobPhaseName(job().phase) << ": " << job().reason;
}

TEST_P(Chaos, AClusterThatIsWellAgainEndsItsJob) { TrainsWhenAllIsWellAgain(); }

TEST_P(Chaos, AJobThatIsBoundByPinsWaitsForItsDevices) {
  restarts_ = true;
  job().config.planner.pins = "stage0=n1, stage1=n3/gpu0";
  core_->state.run->named = planner::NamedPlaces(job().config.planner);
  TrainsWhenAllIsWellAgain();
}

TEST_P(Chaos, AJobThatIsBoundByAPlanByHandWaitsForItsDevices) {
  restarts_ = true;
  job().config.planner.plan_json = R"({"pipelines": [{"stages": [
      {"ministages": [[0, 0]], "units": [{"microbatches": [8], "ranks": [{"device": "n0/gpu0"}]}]},
      {"ministages": [[1, 1]], "units": [{"microbatches": [8], "ranks": [{"device": "n2/gpu0"}]}]}]}]})";
  core_->state.run->named = planner::NamedPlaces(job().config.planner);
  ASSERT_EQ(core_->state.run->named.size(), 2u);
  TrainsWhenAllIsWellAgain();
}

TEST_P(Chaos, AJobThatNeedsMostDevicesWaitsForThem) {
  restarts_ = true;
  fewest_devices_[JobId("a")] = 3;
  TrainsWhenAllIsWellAgain();
}

// Two are bound to nodes that come and go, and one is not: whoever can run does.
TEST_P(Chaos, JobsThatLendAndBorrowAllEnd) {
  restarts_ = true;
  job().config.planner.pins = "stage0=n1";
  core_->state.run->named = planner::NamedPlaces(job().config.planner);
  AddJob("b", kSteps).config.planner.pins = "stage0=n2";
  AddJob("c", 10 * kSteps);
  while (job().step < 1) Turn();
  for (int turn = 0; turn < 600; ++turn) {
    if (Chance(0.12)) Disturb();
    Turn();
  }
  for (Node& node : nodes_) {
    if (node.link != nullptr) Lose(node);
    (void)SetDrained(*core_, node.description.name, false);
    Dial(node);
    for (int turn = 0; turn < 50; ++turn) Turn();
  }
  const absl::Duration calm = clock_.Now();
  const auto all_have_ended = [&] {
    return std::all_of(core_->state.jobs.begin(), core_->state.jobs.end(),
                       [](const auto& entry) { return IsFinal(entry.second.phase); });
  };
  while (!all_have_ended() && clock_.Now() - calm < absl::Hours(1)) Turn();
  for (const auto& [id, other] : core_->state.jobs) {
    EXPECT_EQ(other.phase, JobPhase::kSucceeded) << id.value() << " " << JobPhaseName(other.phase) << ": " << other.reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Chaos, testing::Range(1, 9));

}  // namespace
}  // namespace motley::coordinator
