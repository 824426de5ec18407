// Which rank makes a job slower than predicted: the one that waits for nobody while all others wait. Not the one whose own work
// takes long: an emulated device that is told late of a transfer's end counts that as its own.
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
  // Over the newest steps, at least kWindow of them and at least kWindowSeconds; it stays named until it is clearly not slow any
  // more.
  struct Slow {
    DeviceId device;
    int steps = 0;            // in which all others waited for it
    int of = 0;               // steps that were looked at
    double step_seconds = 0;  // of the job, meanwhile
  };
  const std::optional<Slow>& slow() const { return slow_; }
  // For people; empty: nobody is slow.
  std::string Sentence(const JobId& job) const;

  static constexpr size_t kWindow = 15;
  // Short steps are noisy: fifteen of them may be a second of what a host does now and then.
  static constexpr double kWindowSeconds = 30;

 private:
  struct Step {
    double seconds = 0;
    std::optional<size_t> held_up_by;  // rank
  };
  struct Reports {
    double seconds = 0;
    std::vector<std::optional<double>> waited;  // longer than predicted, by rank
    size_t missing = 0;
  };
  std::optional<size_t> WhoHoldsUp(const Reports& reports) const;
  void Add(const Step& step);
  bool IsSlow(size_t rank) const;
  void Judge();

  std::vector<DeviceId> devices_;
  std::vector<double> predicted_wait_;
  double predicted_step_seconds_ = 0;
  std::map<int64_t, Reports> open_;  // steps of which reports are missing, the newest few
  std::deque<Step> window_;
  double window_seconds_ = 0;  // of all its steps
  std::vector<int> held_up_;   // of its steps, by rank
  int all_held_up_ = 0;
  std::optional<Slow> slow_;
};

}  // namespace motley::coordinator
