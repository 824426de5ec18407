// What of a rank plans may keep in the host's memory while it is not needed: what a job or a command line allows, and what of it
// runs.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace motley {

struct OffloadKinds {
  bool activations = false;  // boundaries: the inputs of layers, between forward and backward
  bool parameters = false;   // of ministages that do not compute
  bool optimizer = false;    // moments and master copy, between the steps

  static constexpr OffloadKinds All() { return {true, true, true}; }
  static constexpr OffloadKinds None() { return {}; }
  constexpr bool any() const { return activations || parameters || optimizer; }
  constexpr bool takes_state() const { return parameters || optimizer; }  // so that less of it must lie on devices
  // Those that are in both, and those that are not in `other`.
  constexpr OffloadKinds And(const OffloadKinds& other) const {
    return {activations && other.activations, parameters && other.parameters, optimizer && other.optimizer};
  }
  constexpr OffloadKinds Without(const OffloadKinds& other) const {
    return {activations && !other.activations, parameters && !other.parameters, optimizer && !other.optimizer};
  }
  friend bool operator==(const OffloadKinds&, const OffloadKinds&) = default;
};

// "activations and parameters"; of none "nothing".
std::string InWords(const OffloadKinds& kinds);

// planner.offload and --offload: "auto" allows all kinds, "never" none, a list ("activations,optimizer") these.
// INVALID_ARGUMENT names the word and those that there are; gradients are not offloaded yet.
absl::StatusOr<OffloadKinds> ParseOffload(std::string_view text);

}  // namespace motley
