// What of a unit's state waits in a rank's host memory, and how it lies there: one area a unit, in the order
//   gradient, parameter, both moments, cast
// of which an area has what the program offloads. A slot of the device for its optimizer has the same order, so what comes
// for a step is one copy, and what goes back behind it another. Who plans the bytes and who copies them ask the same.
#pragma once

#include <cstdint>

#include "common/program/offload_kinds.h"

namespace motley {

// Bytes of one unit. Of a unit of which the rank owns nothing all are 0.
struct HostState {
  int64_t gradient = 0, parameter = 0;
  int64_t moment = 0;  // each of the two
  int64_t cast = 0;    // the parameter in the compute type, for gathers, where that is another one than the state's

  int64_t ParameterAt() const { return gradient; }
  int64_t MomentAt(int which) const { return gradient + parameter + which * moment; }
  int64_t CastAt() const { return MomentAt(2); }
  // What a step needs: the area's first bytes. What it makes: the last ones.
  int64_t StepNeeds() const { return CastAt(); }
  int64_t StepMakes() const { return total() - gradient; }
  int64_t total() const { return CastAt() + cast; }
  // Of its place in host memory, which begins at a cache line, and of a slot for it.
  int64_t AreaBytes() const;
};

// `owned`: elements of the unit that the rank owns. `state_bytes`, `compute_bytes`: of an element of the state, of one that
// computes.
HostState HostStateOf(const OffloadKinds& offloads, int64_t owned, int64_t state_bytes, int64_t compute_bytes);

}  // namespace motley
