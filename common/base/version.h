// What this build is called, and what it speaks.
#pragma once

namespace motley {
inline constexpr char kVersion[] = "0.1.0";
inline constexpr char kProtocol[] = "motley.v1";  // the package of proto/: what speaks another is not understood at all
// Of the workers' sessions: goes up when a message changes so that the other end must know. A coordinator takes its own number
// and the one before, so a cluster is upgraded coordinator first (docs/use/upgrading.md). 1: of before it was said; 3: files on
// the nodes' disks; 4: copies of them; 5: they are carried to people;
// 6: what lies on a disk is listed, and told to go.
inline constexpr int kSessionProtocol = 6;
inline constexpr int kOldestSessionProtocol = kSessionProtocol - 1;
}  // namespace motley
