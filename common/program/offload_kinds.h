// What of a rank may wait in the host's memory while it is not needed: what its program keeps there, what a job or a command line
// allows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace motley {

struct OffloadKinds {
  bool activations = false;  // boundaries: the inputs of layers, between forward and backward
  bool parameters = false;   // of units that do not compute
  bool gradients = false;    // once they are summed, until the step
  bool optimizer = false;    // moments, between the steps

  static constexpr OffloadKinds All() { return {true, true, true, true}; }
  static constexpr OffloadKinds None() { return {}; }
  constexpr bool any() const { return activations || takes_state(); }
  constexpr bool takes_state() const { return parameters || gradients || optimizer; }  // so that less of it must lie on devices
  // Those that are in both, in either, and those that are not in `other`.
  constexpr OffloadKinds And(const OffloadKinds& other) const {
    return {activations && other.activations, parameters && other.parameters, gradients && other.gradients,
            optimizer && other.optimizer};
  }
  constexpr OffloadKinds Or(const OffloadKinds& other) const {
    return {activations || other.activations, parameters || other.parameters, gradients || other.gradients,
            optimizer || other.optimizer};
  }
  constexpr OffloadKinds Without(const OffloadKinds& other) const {
    return {activations && !other.activations, parameters && !other.parameters, gradients && !other.gradients,
            optimizer && !other.optimizer};
  }
  friend bool operator==(const OffloadKinds&, const OffloadKinds&) = default;
};

// "activations", "parameters", "gradients", "optimizer".
std::vector<std::string> WordsOf(const OffloadKinds& kinds);
// False: it is none of them.
bool AddWord(std::string_view word, OffloadKinds* kinds);
// "activations and parameters"; of none "nothing".
std::string InWords(const OffloadKinds& kinds);

// planner.offload and --offload: "auto" allows all kinds, "never" none, a list ("activations,optimizer") these.
// INVALID_ARGUMENT names the word and those that there are.
absl::StatusOr<OffloadKinds> ParseOffload(std::string_view text);

}  // namespace motley
