#include "coordinator/state/prediction_watch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace motley::coordinator {

void PredictionWatch::Begin(const std::vector<DeviceDescription>& devices) {
  devices_.clear();
  sentence_.clear();
  steps_off_ = 0;
  const bool declared =
      std::any_of(devices.begin(), devices.end(), [](const DeviceDescription& device) { return device.flops_per_second > 0; });
  if (declared) return;
  for (const DeviceDescription& device : devices) devices_.insert(device.id);
}

bool PredictionWatch::OnStep(double predicted_seconds, double measured_seconds) {
  if (devices_.empty() || predicted_seconds <= 0 || !sentence_.empty()) return false;
  const double off = measured_seconds / predicted_seconds - 1;
  const bool matters = std::abs(measured_seconds - predicted_seconds) > kLeastOffSeconds;
  steps_off_ = std::abs(off) > kMostOff && matters ? steps_off_ + 1 : 0;
  if (steps_off_ < kStepsToDoubt) return false;
  doubted_ = devices_;
  doubts_together_ = devices_.size() > 1;
  sentence_ = absl::StrFormat(
      "%d steps in a row took %s than predicted (the last %.3g s, not %.3g s): the devices were busy when they were measured, or "
      "something slows them down now; they are measured again before the next plan, or now by 'motley node measure NODE'",
      kStepsToDoubt, off < 0 ? "less" : "longer", measured_seconds, predicted_seconds);
  return true;
}

void PredictionWatch::Measured(const DeviceId& device) {
  doubted_.erase(device);
  if (device.empty()) doubts_together_ = false;
}

}  // namespace motley::coordinator
