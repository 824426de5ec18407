// How long something takes, as every message says it: "250 ms", "1.5 s", "4 min 26 s", "2 h 05 min", "90 d".
#pragma once

#include <string>

#include "absl/time/time.h"

namespace motley {

std::string DurationText(absl::Duration duration);

}  // namespace motley
