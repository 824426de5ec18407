// Whether steps take what was predicted, where the devices' speed was measured: a profile that was made while the machine was
// busy misleads every plan until somebody measures again.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/device/device.h"

namespace motley::coordinator {

class PredictionWatch {
 public:
  // Of a generation that begins. A declared speed is no measurement: with one among `devices` nothing is doubted.
  void Begin(const std::vector<DeviceDescription>& devices);
  // Of each step. True once a generation: when kStepsToDoubt in a row were off by more than kMostOff, either way, and by more
  // than what a host adds to the shortest of steps.
  bool OnStep(double predicted_seconds, double measured_seconds);
  // Of `device` there is a new measurement; of all of them together, where it is empty.
  void Measured(const DeviceId& device);

  // What is to be measured again before the next plan. It outlives the generation in which it was doubted.
  bool Doubts(const DeviceId& device) const { return doubted_.contains(device); }
  bool doubts_together() const { return doubts_together_; }
  // For people; empty while nothing of this generation is doubted.
  const std::string& sentence() const { return sentence_; }

  static constexpr int kStepsToDoubt = 10;
  static constexpr double kMostOff = 1.0 / 3, kLeastOffSeconds = 0.01;

 private:
  std::set<DeviceId> devices_;  // of the generation; empty: nothing is watched
  std::set<DeviceId> doubted_;
  bool doubts_together_ = false;
  int steps_off_ = 0;  // in a row
  std::string sentence_;
};

}  // namespace motley::coordinator
