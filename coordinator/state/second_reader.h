// One reader's word does not condemn a checkpoint: what a rank found damaged is read whole by another node before the next epoch
// begins. Where it verifies there, whoever complained reads badly and is left out. Pure: epoch/second_opinion asks and files.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace motley::coordinator {

struct ClusterState;
struct Decision;
struct DriverConfig;

enum class Verdict {
  kDamaged,    // the second reader found damage, too; or there is none but the accuser, which found it twice: it is skipped
  kWhole,      // it verifies on another node: the accuser's is left out
  kReadAgain,  // nobody but the accuser's node could read it, and this time it verified, or is gone: tried again as if nothing
               // was
};

// Null: no checkpoint is suspected. Call only while state.run is set and no rank of the job runs.
std::optional<Decision> DecideSecondReader(absl::Duration now, const ClusterState& state, const DriverConfig& config);

}  // namespace motley::coordinator
