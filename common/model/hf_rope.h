// The rotary positions of a config.json: the base, and how the positions are scaled.
#pragma once

#include "common/model/hf_reader.h"
#include "common/model/model.h"

namespace motley {

// What a price that leaves a scaling of positions out means.
inline constexpr char kNoProduct[] = "priced as without: no product depends on it";

// `shape` comes with the base that its type has where none is said, and with the longest sequence. Newer configs hold rope_theta
// inside rope_parameters; older ones beside a rope_scaling of null. A scaling is taken, refused or noted, never left out in
// silence.
void ReadRope(const HfReader& config, ModelShape* shape);
// The same of a type whose layers with a window have a base of their own, which is returned: `local_theta` where none is said. In
// newer configs rope_parameters has an object for each of the two.
double ReadRopeByWindow(const HfReader& config, double local_theta, ModelShape* shape);

}  // namespace motley
