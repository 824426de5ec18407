// How a card was while it was measured, in words.
#pragma once

#include <string>

#include "common/session/profile.h"

namespace motley {

// "held by its power limit at 1035 MHz and 71.8 of 72 W"; empty: the card did not say.
std::string LoadText(const CardLoad& load);
// The same, and whether its profile was cut short.
std::string MeasuredText(const CardLoad& load, bool cut_short);

}  // namespace motley
