// A cluster of two nodes and a job, built by hand; time is a number.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "coordinator/state/decide.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {

inline constexpr int64_t kEnoughBytes = 1'000'000;

class DecideTest : public testing::Test {
 protected:
  DecideTest() {
    JobRecord job;
    job.id = JobId("j");
    job.config.training.steps = 100;
    state_.jobs[job.id] = job;
    state_.run.emplace();
    state_.run->job = job.id;
    AddNode("n1");
    AddNode("n2");
    state_.membership_changed = now_ - absl::Minutes(1);
  }
  void AddNode(const std::string& name) {
    NodeRecord& node = state_.nodes[NodeName(name)];
    node.connected = true;
    node.description.name = NodeName(name);
    node.description.incarnation = 1;
    node.description.devices.resize(1);
    node.description.devices[0].id = DeviceId(name + "/gpu0");
    state_.membership_changed = now_;
  }
  NodeRecord& node(const std::string& name) { return state_.nodes.at(NodeName(name)); }
  JobRun& run() { return *state_.run; }
  JobRecord& job() { return state_.jobs.at(JobId("j")); }
  void Enter(Stage stage) {
    run().stage = stage;
    run().stage_since = now_;
    run().considered = UsableDevices(state_, run());
    run().ranks.clear();
    for (const DeviceDescription& device : run().considered) run().ranks.push_back({device.id, 1, 0});
  }
  void Fail(FailureKind kind, const std::string& device, const std::string& message) {
    run().failures.push_back({now_, kind, NodeOf(DeviceId(device)), DeviceId(device), message});
  }
  void End(const std::string& device) {
    for (RankRun& rank : run().ranks) {
      if (rank.device.value() == device) rank.ended = true;
    }
  }
  Decision Now() { return Decide(now_, state_, config_); }

  absl::Duration now_ = absl::Seconds(1000);
  ClusterState state_;
  DriverConfig config_;
};

}  // namespace motley::coordinator
