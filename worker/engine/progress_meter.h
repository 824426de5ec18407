// Tells the host that the rank lives, at most every 50 ms. Thread-safe; cheap when there is nothing to tell.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "common/program/program.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/base/rank_host.h"

namespace motley::engine {

class ProgressMeter {
 public:
  explicit ProgressMeter(RankHost& host) : host_(host) {}

  void BeginStep(int64_t step) { step_ = step; }
  void Begin(int64_t instruction, const Operation& op) {
    instruction_ = instruction;
    operation_ = op.index();
    Beat();
  }
  // Something has moved.
  void Beat() {
    if (Due()) host_.OnProgress(step_, instruction_, std::string(OperationName(kEveryOperation[operation_])));
  }
  // Outside the program: "restoring", "saving a checkpoint".
  void Beat(const std::string& doing) {
    if (Due()) host_.OnProgress(step_, -1, doing);
  }

 private:
  static constexpr int64_t kIntervalNs = 50'000'000;

  bool Due() {
    const int64_t now_ns = MonotonicNs();
    int64_t last_ns = last_ns_;
    return now_ns - last_ns >= kIntervalNs && last_ns_.compare_exchange_strong(last_ns, now_ns);
  }

  RankHost& host_;
  std::atomic<int64_t> step_{0}, instruction_{0}, last_ns_{0};
  std::atomic<size_t> operation_{0};  // the index in the variant
};

}  // namespace motley::engine
