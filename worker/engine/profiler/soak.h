// Loads a device before it is measured, until it is as fast as in a job that runs for hours. A card computes for seconds at
// clocks that its power limit and its warmth do not let it keep: a small one loses a third to a half of them
// (docs/inside/profiles.md).
#pragma once

#include "worker/engine/profiler/unit_profiler.h"

namespace motley::engine {

// A layer's passes for DeviceBackend::soak(), by the device's clock or the host's, whichever is sooner. Nothing of a device that
// needs none or has no stream, nor of one that has no memory for a sample. May throw c10::Error.
void Soak(const ProfiledRank& rank);

}  // namespace motley::engine
