// The mode bits that the coordinator's files never have.
#pragma once

#include <sys/types.h>

namespace motley::coordinator {

// Jobs and events are not for every account of the machine. Folders can be walked through: what is beneath has modes of its own.
// What whoever started the daemon takes from its own account would keep the next start from its store.
constexpr mode_t DaemonUmask(mode_t inherited) { return (inherited & 0077) | 0066; }

}  // namespace motley::coordinator
