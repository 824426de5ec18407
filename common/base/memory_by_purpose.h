// What a rank's bytes are for: the same list where a plan predicts them and where the engine counts them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace motley {

// Bytes of one rank by what they are for: at one moment, they add up; or each purpose's own most, whenever that is.
struct MemoryByPurpose {
  int64_t parameters = 0, gradients = 0, optimizer = 0;  // owned (or replicated) state
  int64_t gathered = 0;                                  // buffers of parameters and gradients that are assembled for computing
  int64_t slots = 0;                                     // what comes from host memory has its room in
  int64_t boundaries = 0;                                // activations between units, kept or in flight
  int64_t saved = 0;                                     // operators' saved tensors
  int64_t workspace = 0;                                 // temporaries, logits included
  int64_t context = 0;                                   // what is there before any of these
  int64_t host = 0;                                      // offloaded, in host memory; not part of total()
  // From step to step.
  int64_t held() const { return parameters + gradients + optimizer + gathered + slots; }
  // Of one step: what its passes make.
  int64_t passes() const { return boundaries + saved + workspace; }
  int64_t total() const { return held() + passes() + context; }
  friend bool operator==(const MemoryByPurpose&, const MemoryByPurpose&) = default;
};

// What waits in host memory, from before the first step to the last one.
struct HostMemoryByPurpose {
  int64_t inputs = 0;                                    // of layers: a slot for each that waits at once
  int64_t parameters = 0, gradients = 0, optimizer = 0;  // of units that the rank owns a part of
  int64_t total() const { return inputs + parameters + gradients + optimizer; }
  friend bool operator==(const HostMemoryByPurpose&, const HostMemoryByPurpose&) = default;
};

// As a rank measured it in a step.
struct MeasuredMemory {
  MemoryByPurpose most;     // of the device, of each purpose its own
  bool has_passes = false;  // else what passes make is not told apart: a card's allocator knows the sum alone
  HostMemoryByPurpose host;
  friend bool operator==(const MeasuredMemory&, const MeasuredMemory&) = default;
};

// Of what is on the device.
enum class MemoryPurpose { kParameters, kGradients, kOptimizer, kGathered, kSlots, kBoundaries, kSaved, kWorkspace, kContext };

struct HostPurposeTraits {
  const char* name;
  int64_t HostMemoryByPurpose::*bytes;
};
inline constexpr std::array kHostPurposes = {
    HostPurposeTraits{"inputs", &HostMemoryByPurpose::inputs},
    HostPurposeTraits{"parameters", &HostMemoryByPurpose::parameters},
    HostPurposeTraits{"gradients", &HostMemoryByPurpose::gradients},
    HostPurposeTraits{"optimizer", &HostMemoryByPurpose::optimizer},
};

struct MemoryPurposeTraits {
  MemoryPurpose purpose;
  const char* name;
  int64_t MemoryByPurpose::*bytes;
};
inline constexpr std::array kMemoryPurposes = {
    MemoryPurposeTraits{MemoryPurpose::kParameters, "parameters", &MemoryByPurpose::parameters},
    MemoryPurposeTraits{MemoryPurpose::kGradients, "gradients", &MemoryByPurpose::gradients},
    MemoryPurposeTraits{MemoryPurpose::kOptimizer, "optimizer", &MemoryByPurpose::optimizer},
    MemoryPurposeTraits{MemoryPurpose::kGathered, "gathered", &MemoryByPurpose::gathered},
    MemoryPurposeTraits{MemoryPurpose::kSlots, "slots", &MemoryByPurpose::slots},
    MemoryPurposeTraits{MemoryPurpose::kBoundaries, "boundaries", &MemoryByPurpose::boundaries},
    MemoryPurposeTraits{MemoryPurpose::kSaved, "saved", &MemoryByPurpose::saved},
    MemoryPurposeTraits{MemoryPurpose::kWorkspace, "workspace", &MemoryByPurpose::workspace},
    MemoryPurposeTraits{MemoryPurpose::kContext, "context", &MemoryByPurpose::context},
};
inline constexpr size_t kNumMemoryPurposes = kMemoryPurposes.size();

}  // namespace motley
