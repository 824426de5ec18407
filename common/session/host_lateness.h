// A host that computes emulated devices slower than they are declared: what is seen then is the host, and no card.
#pragma once

#include <string>

namespace motley {

// Of a step that took `step_seconds` and whose worst device was late by `lateness_seconds`: what people should know and do.
// Empty where that is noise.
std::string HostLateness(double lateness_seconds, double step_seconds);

}  // namespace motley
