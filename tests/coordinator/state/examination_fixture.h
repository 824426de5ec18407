// An examination whose nodes answer as the test says; time is a number.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "coordinator/state/cluster.h"
#include "coordinator/state/examination.h"
#include "coordinator/state/examination_findings.h"

namespace motley::coordinator {

class ExaminationTest : public ::testing::Test {
 protected:
  void AddNode(const std::string& name) {
    NodeRecord& node = state_.nodes[NodeName(name)];
    node.connected = true;
    node.last_seen = clock_.Now();
    node.description = {NodeName(name), "1", 7, "10.0.0." + name, {}, {}, {}, 9};
    node.description.devices.resize(1);
    e_.nodes[NodeName(name)] = 7;
  }
  void Begin() {
    e_.id = "doctor-1", e_.secret = "secret";
    e_.begun = e_.since = clock_.Now();
    Step();
  }
  void Step() { sent_ = Advance(clock_.Now(), state_, e_); }
  template <typename Command>
  const Command* SentTo(const std::string& node) {
    for (const auto& [to, command] : sent_) {
      if (to == NodeName(node) && std::holds_alternative<Command>(command)) return &std::get<Command>(command);
    }
    return nullptr;
  }
  // Everybody answers what was sent, well; but those named.
  void Answer(const std::set<std::string>& silent = {}) {
    for (const auto& [node, command] : Messages(sent_)) {
      if (silent.contains(node.value())) continue;
      if (const auto* reach = std::get_if<ReachCheckCommand>(&command)) {
        ReachReport report{reach->check_id, {}};
        for (const ReachTarget& to : reach->targets) report.answers.push_back({to.node, "", 0.001, reach->burst ? 1e8 : 0});
        EXPECT_TRUE(FileReach(node, report, e_));
      } else if (const auto* storage = std::get_if<StorageCheckCommand>(&command); storage != nullptr && !storage->over) {
        EXPECT_TRUE(FileStorage(node, {storage->job, storage->epoch, "", {100, "digest"}, true, storage->check_id}, e_));
      }
    }
    Step();
  }
  void AnswerAll() {
    for (int i = 0; i < 1000 && e_.stage != ExaminationStage::kDone; ++i) Answer();
    EXPECT_EQ(e_.stage, ExaminationStage::kDone);
  }
  std::vector<Finding> Found(FindingState state) {
    std::vector<Finding> found;
    for (Finding& finding : Judge(clock_.Now(), state_, e_)) {
      if (finding.state == state) found.push_back(std::move(finding));
    }
    return found;
  }
  std::string Text(FindingState state) {
    std::string text;
    for (const Finding& finding : Found(state)) text += finding.what + ": " + finding.text + "\n";
    return text;
  }

  FakeClock clock_;
  ClusterState state_;
  Examination e_;
  Messages sent_;
};

}  // namespace motley::coordinator
