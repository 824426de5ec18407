// What people take for a checkpoint and is none: weights as other programs write them, and Motley's own export.
#pragma once

#include <string>

namespace motley {

// Of a folder, or a file, without a checkpoint: a sentence that names it, what it is and what to give instead; empty where it is
// nothing of that kind. Looks at names alone.
std::string OtherWeightsIn(const std::string& path);

}  // namespace motley
