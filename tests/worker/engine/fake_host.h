// Several ranks as threads of one process: rendezvous in memory, and what the engines reported.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/job/job.h"
#include "worker/engine/base/rank_host.h"

namespace motley::engine {

// Shared by the ranks of one job. Thread-safe.
class FakeKv {
 public:
  void Set(const std::string& key, const std::string& value) {
    absl::MutexLock lock(&mutex_);
    values_[key] = value;
  }
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return values_.count(key) > 0; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&there), timeout)) return absl::DeadlineExceededError("no key " + key);
    return values_[key];
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
};

class FakeHost : public RankHost {
 public:
  explicit FakeHost(FakeKv& kv) : kv_(kv) {}
  absl::Status KvSet(const std::string& key, const std::string& value) override {
    kv_.Set(key, value);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> KvGet(const std::string& key, absl::Duration timeout) override { return kv_.Get(key, timeout); }
  absl::Status ConfirmEpochIsNewest(int64_t step, const std::string& purpose) override {
    return newest ? confirmation : absl::FailedPreconditionError("stale");
  }
  absl::StatusOr<std::string> AskForMark(int64_t step, const std::string& purpose, const std::string& manifest_digest) override {
    if (!newest) return absl::FailedPreconditionError("stale");
    if (!confirmation.ok()) return confirmation;
    return std::string("0123456789abcdef0123456789abcdef");
  }
  void OnReady(const std::vector<TransportUse>& uses, int64_t bytes) override {
    transports = uses;
    context_bytes = bytes;
    ++ready;
  }
  void OnStep(const StepResult& step) override {
    steps.push_back(step);
    if (on_step) on_step(step);
  }
  void OnProgress(int64_t step, int64_t instruction, const std::string& doing) override { ++progress; }
  void OnCheckpoint(int64_t step, const std::string& folder, int64_t bytes, double seconds) override {
    checkpoints[step] = folder;
  }
  void OnCheckpointFailed(int64_t step, const std::string& message, const DeviceId& blamed) override {
    failed_checkpoints[step] = message;
    blamed_devices[step] = blamed.value();
    if (on_checkpoint_failed) on_checkpoint_failed();
  }
  void OnLog(const std::string& line) override {}

  bool newest = true;
  absl::Status confirmation;  // of the newest epoch
  std::atomic<int> ready{0}, progress{0};
  std::vector<StepResult> steps;               // read after Run has returned
  std::vector<TransportUse> transports;        // the same
  int64_t context_bytes = 0;                   // the same
  std::map<int64_t, std::string> checkpoints;  // the same
  std::map<int64_t, std::string> failed_checkpoints, blamed_devices;
  std::function<void(const StepResult&)> on_step;
  std::function<void()> on_checkpoint_failed;

 private:
  FakeKv& kv_;
};

// As the storage check does before an epoch: ranks do not make it.
inline void MakeCheckpointFolder(const JobConfig& config) {
  std::error_code not_a_folder;
  if (!config.checkpoint.folder.empty()) std::filesystem::create_directories(config.checkpoint.folder, not_a_folder);
}

// Runs body(rank) on `world` threads and waits for all.
template <typename Body>
void OnRanks(int world, Body body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r) threads.emplace_back([&body, r] { body(r); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace motley::engine
