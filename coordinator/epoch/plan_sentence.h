// What an epoch begins with, in a sentence for people.
#pragma once

#include <string>

#include "coordinator/state/run.h"

namespace motley::coordinator {

// The plan and its prediction, which weights it begins with, and which devices it leaves out.
std::string PlanSentence(const Prepared& prepared);

}  // namespace motley::coordinator
