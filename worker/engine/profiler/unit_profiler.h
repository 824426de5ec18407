// Measures one unit of the model on one device over several microbatch sizes: forward and backward, the backward as two
// instructions, and a part of the unit as a tensor-parallel rank runs it; and the bytes that the whole unit keeps and needs.
// Reads the device's count of bytes: nothing else may allocate tensors on it meanwhile.
#pragma once

#include "common/job/job.h"
#include "common/model/model_slice.h"
#include "common/session/assignment.h"
#include "common/session/profile.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/profiler/profile_time.h"

namespace motley::engine {

// About a quarter of the model, the first one, whose rank adds what is added once. Whole where the model cannot be divided.
ModelSlice SliceToMeasure(const ModelShape& shape);

struct ProfiledRank {
  const RankAssignment& assignment;
  Precision precision;
  DeviceBackend& backend;
  ComputePacer& pacer;
  ProfileTime& time;
  int64_t cap_bytes = 0;  // of the device; 0 = none
  UnitModel& whole;
  UnitModel* part = nullptr;  // of SliceToMeasure; null where that is whole
};

// Sizes double (1, 2, 4, ...) until the batch, the device's memory or the time allowed ends them; at least two. A device that
// has no memory for more than the whole unit's passes is measured by those alone. `end`: when a card should be done; what
// does not fit before it is left out (unit_time.h, docs/inside/profiles.md), but never one sample's passes.
// May throw c10::Error; c10::OutOfMemoryError when not even one sample of the unit fits the device.
UnitProfile MeasureUnit(const ProfiledRank& rank, UnitKind kind, double budget_seconds, absl::Duration end);

}  // namespace motley::engine
