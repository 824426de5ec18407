// An engine without tensors: what it does stands in the job's name. Used in process, and by the fake rank that the
// supervisor's tests start (this test program itself; main_test.cc).
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/memory_shortage.h"
#include "worker/engine/engine.h"

namespace motley::worker {

class FakeEngine : public engine::Engine {
 public:
  explicit FakeEngine(engine::RankHost& host) : host_(host) {}

  absl::StatusOr<engine::RunEnd> Run(const RankAssignment& assignment) override {
    const std::string& behaviour = assignment.config.name;
    if (behaviour == "meet") return Meet(assignment);
    host_.OnReady({{.group = 0, .devices = assignment.devices, .transport = Transport::kTcp, .why_not_nccl = "no card"}},
                  /*context_bytes=*/0);
    if (behaviour == "nonfinite") return absl::AbortedError("loss is NaN in layer 1");
    if (behaviour == "peer") return WithFault(absl::UnavailableError("gather of layer 1: connection closed"), Fault::kPeer);
    if (behaviour == "disk") return WithFault(absl::UnavailableError("cannot write /c: input/output error"), Fault::kStorage);
    if (behaviour == "damage")
      return WithDamagedCheckpoint(absl::DataLossError("rank-0.bin was altered"), "/c/step-00000040-gen-3");
    if (behaviour == "fail") return absl::InternalError("matrix product of layer 1");
    if (behaviour == "full") {
      return WithMemoryShortage(absl::ResourceExhaustedError("full"),
                                {.held_bytes = assignment.device.memory_bytes, .asked_bytes = 3});
    }
    if (behaviour == "full host") {
      return WithMemoryShortage(absl::ResourceExhaustedError("full"),
                                {.tier = MemoryTier::kHost, .held_bytes = assignment.device.node_host_memory_bytes});
    }
    if (behaviour == "bytes") {
      fprintf(stderr, "printed \xff\xfe\n");
      host_.OnLog("logged \xff");
      return absl::InternalError("file \xff");
    }
    if (behaviour == "environment") {
      rlimit core{};
      getrlimit(RLIMIT_CORE, &core);
      host_.OnLog(absl::StrCat("secret: ", getenv("SECRET_OF_THE_DAEMON") != nullptr, ", core files: ", core.rlim_max));
      return engine::RunEnd::kAllSteps;
    }
    if (behaviour == "arguments") {
      std::ifstream file("/proc/self/cmdline");
      std::string line;
      for (std::string argument; std::getline(file, argument, '\0');) absl::StrAppend(&line, argument, " ");
      host_.OnLog(line);
      return engine::RunEnd::kAllSteps;
    }
    if (behaviour == "card") {
      const char* visible = getenv("CUDA_VISIBLE_DEVICES");
      host_.OnLog(absl::StrCat("CUDA_VISIBLE_DEVICES=", visible == nullptr ? "none" : visible));
      return engine::RunEnd::kAllSteps;
    }
    if (behaviour == "flood") {
      const std::string line = std::string(1 << 16, 'x') + "\n";
      while (true) (void)!write(STDERR_FILENO, line.data(), line.size());
    }
    if (behaviour == "long") {
      host_.OnLog(std::string(100'000, 'y'));
      (void)host_.KvSet("key", std::string(1 << 20, 'z'));
      while (true) pause();
    }
    if (behaviour == "exit") {
      fprintf(stderr, "first line\nlast words\n");
      _exit(3);
    }
    while (behaviour == "silent") pause();  // until it is killed
    while (behaviour == "beside" && !stop_) host_.OnProgress(0, -1, "comparing the data (37 %)");
    if (behaviour == "remember") return Remember();
    const bool ends_badly = behaviour == "fail-when-stopped" || behaviour == "exit-when-stopped";
    while ((behaviour == "wait-for-stop" || ends_badly) && !stop_) host_.OnProgress(0, 0, "forward");
    if (behaviour == "fail-when-stopped") return absl::InternalError("CUDA error: unspecified launch failure");
    if (behaviour == "exit-when-stopped") _exit(3);
    for (int64_t step = 1; step <= assignment.config.training.steps; ++step) {
      host_.OnProgress(step, 1, "forward");
      host_.OnStep({.step = step,
                    .loss = 2.5,
                    .has_validation_loss = true,
                    .validation_loss = 2.75,
                    .validation_bits_per_byte = 1.5,
                    .step_seconds = 0.5,
                    .lanes = {.busy = {0.25}, .host = 0.25},
                    .spans = {{absl::ZeroDuration(), absl::Seconds(step)}}});
      while (behaviour == "until-stopped" && !stop_) host_.OnProgress(step, 1, "forward");
      if (stop_) return engine::RunEnd::kStopped;
    }
    if (behaviour == "publish") {
      if (absl::Status status = host_.ConfirmEpochIsNewest(assignment.config.training.steps, "publish"); !status.ok())
        return status;
      host_.OnCheckpoint(assignment.config.training.steps, "/checkpoints/step", 10, 0.5);
    }
    return engine::RunEnd::kAllSteps;
  }
  void RequestStop(bool) override { stop_ = true; }

  absl::StatusOr<ComputeProfile> ProfileCompute(const RankAssignment& assignment) override {
    if (assignment.config.name == "fail") return absl::ResourceExhaustedError("no memory");
    if (assignment.config.name == "exit-measuring") _exit(4);
    while (assignment.config.name == "silent") pause();
    if (assignment.config.name == "measure-long") std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ComputeProfile profile;
    profile.device = assignment.device.id;
    profile.context_bytes = 7;
    return profile;
  }
  absl::StatusOr<MemoryTrial> TryMemory(const RankAssignment& assignment) override {
    if (assignment.config.name == "full")
      return WithMemoryShortage(absl::ResourceExhaustedError("full"), {.held_bytes = 1, .asked_bytes = 2});
    if (assignment.config.name == "exit-measuring") _exit(4);
    while (assignment.config.name == "silent") pause();
    return MemoryTrial{.samples = 3, .seconds = 0.5, .peak_bytes = assignment.device.memory_bytes};
  }
  absl::StatusOr<CollectiveProfile> ProfileCollectives(const RankAssignment& assignment) override {
    CollectiveProfile profile;
    profile.devices = assignment.devices;
    profile.points.push_back({.bytes = 1, .skew = 1});
    return profile;
  }

 private:
  // Says what lies in the memory that it inherits, and adds a word.
  absl::StatusOr<engine::RunEnd> Remember() {
    constexpr int kKnownParts = 5;
    char found[100] = {};
    const ssize_t bytes = pread(kKnownParts, found, sizeof(found) - 1, 0);
    host_.OnLog(absl::StrCat("found: ", bytes < 0 ? "no memory" : found));
    (void)!pwrite(kKnownParts, "word ", 5, std::max<ssize_t>(bytes, 0));
    return engine::RunEnd::kAllSteps;
  }
  absl::StatusOr<engine::RunEnd> Meet(const RankAssignment& assignment) {
    if (absl::Status status = host_.KvSet(absl::StrCat("rank-", assignment.rank), "here"); !status.ok()) return status;
    auto value = host_.KvGet("rank-other", absl::Seconds(30));
    if (!value.ok()) return value.status();
    host_.OnLog("met " + *value);
    return engine::RunEnd::kAllSteps;
  }

  engine::RankHost& host_;
  std::atomic<bool> stop_{false};
};

}  // namespace motley::worker
