// Which rank makes a job slower than predicted: the one whose own work takes longer, while the others wait for it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/program/step_spans.h"

namespace motley::coordinator {

class SlowRankWatch {
 public:
  // Of a generation that begins: by rank, what the plan says of a step.
  void Begin(std::vector<DeviceId> devices, std::vector<LaneSeconds> predicted, double predicted_step_seconds);
  // A rank's lanes of a step. Steps count when every rank has reported them; a late report of an older one is dropped.
  void OnReport(int rank, int64_t step, double step_seconds, const LaneSeconds& lanes);

  const std::vector<DeviceId>& devices() const { return devices_; }  // that are watched
  // Over the newest kWindow steps; it stays named until it is not slow any more.
  struct Slow {
    DeviceId device;
    double own_seconds = 0, predicted_seconds = 0;  // of a step, its own work: what its compute lane did, and its host
    double step_seconds = 0;                        // of the job, meanwhile
  };
  const std::optional<Slow>& slow() const { return slow_; }
  // For people; empty: nobody is slow.
  std::string Sentence(const JobId& job) const;

  static constexpr size_t kWindow = 15;

 private:
  struct Step {
    double seconds = 0;
    std::vector<double> own;  // by rank
  };
  struct Reports {
    double seconds = 0;
    std::vector<std::optional<double>> own;
    size_t missing = 0;
  };
  std::optional<size_t> WhoHoldsUp(const Step& step) const;
  void Judge();

  std::vector<DeviceId> devices_;
  std::vector<double> predicted_own_;
  double predicted_step_seconds_ = 0;
  std::map<int64_t, Reports> open_;  // steps of which reports are missing, the newest few
  std::deque<Step> window_;
  std::optional<Slow> slow_;
};

}  // namespace motley::coordinator
