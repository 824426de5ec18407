// A coordinator's core on a clock that is turned by hand, with four workers that answer everything at once and train; the plans
// are invented, too.
#pragma once

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/version.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/looks.h"
#include "coordinator/epoch/prober.h"
#include "coordinator/members/recovery.h"
#include "coordinator/members/registry.h"
#include "coordinator/members/reports.h"
#include "planner/live/job_request.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {

inline constexpr int kNodes = 4;  // n0 to n3

class InventedCluster : public CoreTest {
 protected:
  struct Node {
    NodeDescription description;
    std::shared_ptr<Link> link;  // null: away
    std::vector<RankAssignment> ranks;
  };

  InventedCluster() {
    for (int n = 0; n < kNodes; ++n) {
      NodeDescription& node = nodes_[n].description;
      node.name = NodeName("n" + std::to_string(n));
      node.version = kVersion;
      node.protocol = kSessionProtocol;
      node.data_address = "127.0.0.1";
      node.devices.resize(1);
      node.devices[0].id = DeviceId(node.name.value() + "/gpu0");
    }
  }
  ~InventedCluster() override { core_.reset(); }  // before its registry

  JobRecord& AddJob(const std::string& id, int64_t steps) {
    JobRecord& job = core_->state.jobs[JobId(id)];
    job.id = JobId(id);
    job.submitted_unix_ms = static_cast<int64_t>(core_->state.jobs.size());
    job.config.model.config_json =
        R"({"model_type": "gpt2", "vocab_size": 256, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32,
            "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})";
    job.config.training.steps = steps;
    job.config.training.seq_len = 16;
    job.config.data.path = "/data";
    Batch batch;
    batch.jobs.push_back(job);
    EXPECT_TRUE(store_->Commit(batch).ok());
    return job;
  }
  JobRecord& job(const std::string& id) { return core_->state.jobs.at(JobId(id)); }
  // The process is gone; its workers dial again.
  void RestartCore() {
    for (Node& node : nodes_) {
      node.link = nullptr;
      node.ranks.clear();
    }
    core_ = std::make_unique<Core>(config_, clock_, *store_, executor_, registries_.emplace_back(),
                                   [](std::function<void()> task) { task(); });
    ASSERT_TRUE(Recover(*core_).ok());
  }

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
    InventedCluster& test;
    Node& node;
    void operator()(const StorageCheckCommand& c) {
      test.Say(node, StorageReport{c.job, c.epoch, "", DataSummary{1'000'000, "digest"}, true, c.check_id});
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
    void operator()(const HoldingsCommand&) {}
    void operator()(const CopyCommand&) {}
    void operator()(const DropCommand&) {}
    void operator()(const CarryCommand&) {}
    void operator()(const StopCommand& c) {
      if (node.ranks.empty() || node.ranks[0].job != c.job || node.ranks[0].epoch > c.epoch) return;
      if (c.save) test.saved_[c.job] = test.core_->state.jobs.at(c.job).step;
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
    JobRecord& planned = core_->state.jobs.at(run.job);
    Prepared& prepared = run.prepared.emplace();
    prepared.of_planner = true;
    prepared.start_step = saved_[run.job];
    planned.plannings_begun = 0;
    ++plannings_[run.job];
    for (const std::string& place : planner::NamedPlaces(planned.config.planner)) {
      if (!IsConsidered(place)) prepared.status = absl::NotFoundError(place + ": the cluster has no such node or device");
    }
    if (run.considered.size() < fewest_devices_[run.job])
      prepared.status = absl::InvalidArgumentError("too few devices for that stage");
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
    const JobRecord& trained = core_->state.jobs.at(run.job);
    size_t ranks = 0;
    Node* first = nullptr;
    for (Node& node : nodes_) {
      if (node.ranks.empty() || node.ranks[0].job != run.job || node.ranks[0].epoch != trained.epoch) continue;
      ++ranks;
      if (node.ranks[0].rank == 0) first = &node;
    }
    if (run.stage != Stage::kRunning || first == nullptr || ranks != run.ranks.size()) return;
    StepReport step{run.job, trained.epoch, 0, {}, 0, 0, 0, 0};
    step.stats.step = trained.step + 1;
    step.stats.step_seconds = 0.1;
    Say(*first, step);
    if (trained.step < trained.config.training.steps) return;
    for (Node& node : nodes_) End(node, RankEventKind::kFinished);
  }
  void Turn() {
    ProbeNewcomers(*core_);
    Drive(*core_);
    AnswerAll();
    LookAgain(*core_);
    const bool plans = core_->state.run && core_->state.run->stage == Stage::kPlanning && !core_->state.run->prepared;
    if (plans && !hanging_.contains(core_->state.run->job)) Plan();
    Drive(*core_);
    if (core_->state.run) AnswerTrial(), Train();
    clock_.Advance(absl::Milliseconds(100));
  }

  std::set<JobId> hanging_;                 // nothing comes back from their folders
  std::map<JobId, size_t> fewest_devices_;  // no plan has fewer
  std::map<JobId, int> plannings_;          // made so far
  std::map<JobId, int64_t> saved_;          // the newest checkpoint's step
  std::list<MetricsRegistry> registries_;
  std::array<Node, kNodes> nodes_;
};

}  // namespace motley::coordinator
