#include "common/session/host_lateness.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace motley {
namespace {

constexpr double kLeastSeconds = 0.05;  // less is the noise of every host
constexpr double kLeastShare = 0.1;     // of the step

}  // namespace

std::string HostLateness(double lateness_seconds, double step_seconds) {
  if (!(lateness_seconds > kLeastSeconds) || !(step_seconds > 0) || lateness_seconds < kLeastShare * step_seconds) return "";
  return absl::StrCat("too slow for the emulation: it made a device late by ",
                      absl::StrFormat("%.3g s in a step of %.3g s", lateness_seconds, step_seconds),
                      ", so speeds are the host's and no card's; raise time_dilation in the workers' [emulation], compute in "
                      "float32, or give the host less other work");
}

}  // namespace motley
