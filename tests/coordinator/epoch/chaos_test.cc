// Random events in random order, seeded, on a clock that is turned by hand: whatever came before, a job whose cluster is well
// again goes on and ends well. No state is left without a way on, and nothing that heals ends the job.
#include <array>
#include <list>
#include <random>
#include <set>
#include <utility>

#include "common/base/version.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/prober.h"
#include "coordinator/members/recovery.h"
#include "coordinator/members/registry.h"
#include "coordinator/members/reports.h"
#include "planner/live/job_request.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

constexpr int kNodes = 4;
constexpr int64_t kSteps = 60;

class Chaos : public CoreTest, public testing::WithParamInterface<int> {
 protected:
  struct Node {
    NodeDescription description;
    std::shared_ptr<Link> link;  // null: away
    std::vector<RankAssignment> ranks;
  };

  Chaos() : random_(static_cast<uint32_t>(GetParam())) {
    JobRecord& job = core_->state.jobs[JobId("a")];
    job.id = JobId("a");
    job.config.model.config_json =
        R"({"model_type": "gpt2", "vocab_size": 256, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32,
            "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})";
    job.config.training.steps = kSteps;
    job.config.training.seq_len = 16;
    job.config.data.path = "/data";
    for (int n = 0; n < kNodes; ++n) {
      NodeDescription& node = nodes_[n].description;
      node.name = NodeName("n" + std::to_string(n));
      node.version = kVersion;
      node.data_address = "127.0.0.1";
      node.devices.resize(1);
      node.devices[0].id = DeviceId(node.name.value() + "/gpu0");
      Dial(nodes_[n]);
    }
  }
  ~Chaos() override { core_.reset(); }  // before its registry
  JobRecord& job() { return core_->state.jobs.at(JobId("a")); }
  // Only of a job of which the store knows that it has trained and is not being planned: another that fails has failed.
  void RestartCoordinator() {
    const auto stored = store_->LoadJobs();
    if (!stored.ok() || stored->empty() || stored->at(0).plannings_begun > 0) return;
    if (stored->at(0).step == 0 && stored->at(0).phase != JobPhase::kRunning) return;
    for (Node& node : nodes_) {
      node.link = nullptr;
      node.ranks.clear();
    }
    core_ = std::make_unique<Core>(config_, clock_, *store_, executor_, registries_.emplace_back(),
                                   [](std::function<void()> task) { task(); });
    ASSERT_TRUE(Recover(*core_).ok());
  }
  bool Chance(double share) { return std::uniform_real_distribution<double>(0, 1)(random_) < share; }

  // A new worker, or the same one on a new stream.
  void Dial(Node& node, bool new_worker = true) {
    if (new_worker) {
      ++node.description.incarnation;
      node.ranks.clear();
    }
    auto link = std::make_shared<Link>();
    if (Admit(*core_, node.description, link).ok()) node.link = link;
    Drive(*core_);
  }
  void Lose(Node& node) {
    Disconnect(*core_, node.description.name, "the test broke its connection");
    node.link = nullptr;
    Drive(*core_);
  }
  void Say(Node& node, const WorkerReport& report) {
    if (node.link != nullptr) HandleReport(*core_, node.description.name, report);
  }
  void End(Node& node, RankEventKind kind, Fault fault = Fault::kOurs) {
    const std::vector<RankAssignment> ranks = std::move(node.ranks);
    node.ranks.clear();
    for (const RankAssignment& rank : ranks) {
      Say(node, RankReport{rank.job, rank.epoch, rank.rank, rank.device.id, kind, "the test said so", fault, ""});
    }
  }

  // A worker's answer to everything that it was sent.
  struct Answer {
    Chaos& test;
    Node& node;
    void operator()(const StorageCheckCommand& c) {
      test.Say(node, StorageReport{c.job, c.epoch, "", 1'000'000, "digest", true, c.check_id});
    }
    void operator()(const ReachCheckCommand& c) {
      ReachReport report{c.check_id, {}};
      for (const ReachTarget& target : c.targets) report.answers.push_back({target.node, ""});
      test.Say(node, report);
    }
    void operator()(const ProfileCommand& c) {
      ProfileReport report{c.job, c.epoch, "", {}, {}, c.check_id};
      for (const DeviceId& device : c.compute_devices) report.compute.emplace_back().device = device;
      const bool first = !c.ranks.empty() && c.ranks[0].rank == 0;
      if (c.collectives && first) report.collectives.points.push_back({1, 1, 1, 1});
      test.Say(node, report);
    }
    void operator()(const StartCommand& c) {
      node.ranks = c.ranks;
      for (const RankAssignment& rank : c.ranks) {
        test.Say(node, RankReport{rank.job, rank.epoch, rank.rank, rank.device.id, RankEventKind::kReady, ""});
      }
    }
    void operator()(const AuthoritiesCommand&) {}
    void operator()(const CertificateCommand&) {}
    void operator()(const StopCommand& c) {
      if (!node.ranks.empty() && node.ranks[0].epoch > c.epoch) return;
      test.End(node, c.save ? RankEventKind::kFinished : RankEventKind::kDied);
    }
    void operator()(const KvValueCommand&) {}
    void operator()(const PublishAnswerCommand&) {}
    void operator()(const HeartbeatAnswer&) {}
    void operator()(const TraceCommand&) {}
  };
  void AnswerAll() {
    for (Node& node : nodes_) {
      if (node.link == nullptr) continue;
      const std::vector<CoordinatorCommand> sent = std::move(node.link->sent);
      node.link->sent.clear();
      for (const CoordinatorCommand& command : sent) std::visit(Answer{*this, node}, command);
    }
  }
  bool IsConsidered(const std::string& place) const {
    const auto& devices = core_->state.run->considered;
    return std::any_of(devices.begin(), devices.end(), [&](const DeviceDescription& device) {
      return device.id.value() == place || NodeOf(device.id).value() == place;
    });
  }
  // Every device gets a rank; what they compute does not matter. There is no plan without what pins or the plan by hand name, nor
  // for fewer devices than are wanted.
  void Plan() {
    JobRun& run = *core_->state.run;
    Prepared& prepared = run.prepared.emplace();
    prepared.of_planner = true;
    job().plannings_begun = 0;
    for (const std::string& place : planner::NamedPlaces(job().config.planner)) {
      if (!IsConsidered(place)) prepared.status = absl::NotFoundError(place + ": the cluster has no such node or device");
    }
    if (run.considered.size() < fewest_devices_) prepared.status = absl::InvalidArgumentError("too few devices for that stage");
    if (!prepared.status.ok()) return;
    planner::StagePlan stage;
    for (const DeviceDescription& device : run.considered) {
      planner::UnitPlan& unit = stage.units.emplace_back();
      unit.microbatches = {1};
      unit.ranks.emplace_back().device = device.id;
    }
    prepared.plan.plan.pipelines.resize(1);
    prepared.plan.plan.pipelines[0].stages = {stage};
    prepared.plan.plan.predicted.step_seconds = 0.1;
    prepared.plan.programs.resize(run.considered.size());
    prepared.plan.evaluations.resize(run.considered.size());
    prepared.plan.lanes.resize(run.considered.size());
    prepared.plan.card_contexts.resize(run.considered.size());
  }
  // What the trial plans beside the job say of newcomers: that there is one.
  void AnswerTrial() {
    JobRun& run = *core_->state.run;
    if (!run.trial) return;
    const std::set<NodeName> nodes = std::exchange(run.trial, std::nullopt)->nodes;
    for (const NodeName& node : nodes) run.probes.at(node).plan = absl::OkStatus();
  }
  // One step of the rank 0 that runs, if all its peers do.
  void Train() {
    const JobRun& run = *core_->state.run;
    size_t ranks = 0;
    Node* first = nullptr;
    for (Node& node : nodes_) {
      if (node.ranks.empty() || node.ranks[0].epoch != job().epoch) continue;
      ++ranks;
      if (node.ranks[0].rank == 0) first = &node;
    }
    if (run.stage != Stage::kRunning || first == nullptr || ranks != run.ranks.size()) return;
    StepReport step{JobId("a"), job().epoch, 0, {}, 0, 0, 0, 0};
    step.stats.step = job().step + 1;
    step.stats.step_seconds = 0.1;
    Say(*first, step);
    if (job().step < kSteps) return;
    for (Node& node : nodes_) End(node, RankEventKind::kFinished);
  }
  void Turn() {
    ProbeNewcomers(*core_);
    Drive(*core_);
    AnswerAll();
    if (core_->state.run && core_->state.run->stage == Stage::kPlanning && !core_->state.run->prepared) Plan();
    Drive(*core_);
    if (core_->state.run) AnswerTrial(), Train();
    clock_.Advance(absl::Milliseconds(100));
  }
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
  size_t fewest_devices_ = 0;
  std::list<MetricsRegistry> registries_;
  std::mt19937 random_;
  std::array<Node, kNodes> nodes_;
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
  fewest_devices_ = 3;
  TrainsWhenAllIsWellAgain();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Chaos, testing::Range(1, 9));

}  // namespace
}  // namespace motley::coordinator
