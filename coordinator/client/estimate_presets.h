// `motley estimate` without a model: what could be trained on a cluster.
#pragma once

#include <cstdint>

#include "coordinator/client/command.h"
#include "coordinator/client/exit_code.h"
#include "coordinator/client/offline_flags.h"

namespace motley::client {

// A sequence that most presets take, where none is asked for.
inline constexpr int64_t kUsualSequence = 2048;

// A row for each preset, which says on standard error how far it is when it takes long. Exit 65: none fits.
Exit EstimatePresets(Context& context, const OfflineFlags& flags);

}  // namespace motley::client
