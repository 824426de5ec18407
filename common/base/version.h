// The version that coordinator, workers and CLI compare. A worker of another version is refused.
#pragma once

namespace motley {
inline constexpr char kVersion[] = "0.1.0";
inline constexpr char kProtocol[] = "motley.v1";  // the package of proto/: what speaks another is not understood at all
}  // namespace motley
