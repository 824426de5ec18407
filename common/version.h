// The version that coordinator, workers and CLI compare. A worker of another version is refused.
#pragma once

namespace motley {
inline constexpr char kVersion[] = "0.1.0";
}  // namespace motley
