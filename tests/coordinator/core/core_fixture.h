// A core on a clock that stands still, with a store in a temporary folder and nodes that only remember what they are sent.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "coordinator/core/core.h"
#include "coordinator/store/sqlite_store.h"

namespace motley::coordinator {

class CoreTest : public testing::Test {
 protected:
  struct Link : public WorkerLink {
    void Send(CoordinatorCommand command) override { sent.push_back(std::move(command)); }
    bool HasUnread() const override { return unread; }
    void Close(absl::Status) override {}
    std::vector<CoordinatorCommand> sent;
    bool unread = false;
  };
  struct NoExecutor : public Executor {
    void Run(std::function<void()>, std::function<void()>) override {}
  };

  CoreTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "motley-core-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    auto store = SqliteStore::Open(folder_);
    if (!store.ok()) throw std::runtime_error(std::string(store.status().message()));
    store_ = *std::move(store);
    config_.state_folder = folder_;
    core_ = std::make_unique<Core>(config_, clock_, *store_, executor_, registry_, [](std::function<void()> task) { task(); });
  }
  ~CoreTest() override {
    core_.reset();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  Link& AddNode(const std::string& name) {
    NodeRecord& node = core_->state.nodes[NodeName(name)];
    node.connected = true;
    node.last_seen = clock_.Now();
    node.description.name = NodeName(name);
    node.description.incarnation = 1;
    node.description.devices.resize(1);
    node.description.devices[0].id = DeviceId(name + "/gpu0");
    auto link = std::make_shared<Link>();
    core_->links[NodeName(name)] = link;
    return *link;
  }
  JobRun& AddRun(const std::string& id) {
    JobRecord& job = core_->state.jobs[JobId(id)];
    job.id = JobId(id);
    job.config.checkpoint.folder = "/checkpoints";
    core_->state.run.emplace();
    core_->state.run->job = job.id;
    return *core_->state.run;
  }

  std::string folder_;
  Config config_;
  FakeClock clock_;
  NoExecutor executor_;
  MetricsRegistry registry_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<Core> core_;
};

}  // namespace motley::coordinator
