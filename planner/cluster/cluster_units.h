// Units of cluster files.
#pragma once

namespace motley::planner {

inline constexpr double kGiga = 1e9, kGigabit = 1e9 / 8, kTera = 1e12, kGiB = 1 << 30, kMicro = 1e-6;

}  // namespace motley::planner
