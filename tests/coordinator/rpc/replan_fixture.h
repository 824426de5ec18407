// A job on two nodes, for tests of what makes it plan again.
#pragma once

#include <vector>

#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {

class Replan : public ClusterTest {
 protected:
  // Its checkpoints lie on the nodes' own disks.
  JobConfig MakeLocalConfig(int64_t steps) {
    JobConfig config = MakeConfig(steps);
    config.checkpoint.folder.clear();
    config.checkpoint.storage = "local";
    return config;
  }
  // Two nodes, running, `steps` done. Returns the epoch.
  int64_t Train(FakeWorker& n1, FakeWorker& n2, int64_t steps) {
    const auto ranks = n1.WaitForStart();
    EXPECT_FALSE(ranks.empty() || n2.WaitForStart().empty());
    if (ranks.empty()) return 0;
    n1.SendAll(v1::RankEvent::KIND_READY);
    n2.SendAll(v1::RankEvent::KIND_READY);
    for (int64_t step = 1; step <= steps; ++step) n1.Step(step), n2.Step(step);
    WaitForState("a", v1::JOB_STATE_RUNNING);
    Watch("a", [&](const v1::JobUpdate& update) { return update.has_step() && update.step().step() >= steps; });
    return ranks[0].epoch();
  }
  // Everything that is left of the job, on these workers.
  void FinishOn(std::vector<FakeWorker*> workers, int64_t steps) {
    for (FakeWorker* worker : workers) worker->SendAll(v1::RankEvent::KIND_READY);
    for (FakeWorker* worker : workers) worker->StepTo(steps);
    for (FakeWorker* worker : workers) worker->SendAll(v1::RankEvent::KIND_FINISHED);
    WaitForState("a", v1::JOB_STATE_SUCCEEDED);
  }
  FakeWorker::Options Saving() {
    FakeWorker::Options options;
    options.on_save = Save;
    return options;
  }
};

}  // namespace motley::coordinator
