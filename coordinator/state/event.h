// What happened (durable), and what was printed (a bounded ring).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/ids.h"

namespace motley::coordinator {

struct EventRecord {
  int64_t sequence = 0;  // cluster-wide, increasing; given by the store
  int64_t unix_ms = 0;
  JobId job;         // empty: about the cluster
  std::string kind;  // one of kind:: below
  NodeName node;
  DeviceId device;
  Epoch epoch;
  std::string message;
};

namespace kind {
inline constexpr char kJobState[] = "job_state";
inline constexpr char kNodeJoined[] = "node_joined";
inline constexpr char kNodeLost[] = "node_lost";
inline constexpr char kNodeLeft[] = "node_left";
inline constexpr char kNodeLeaving[] = "node_leaving";
inline constexpr char kNodeDrained[] = "node_drained";
inline constexpr char kNodeUndrained[] = "node_undrained";
inline constexpr char kRankLost[] = "rank_lost";
inline constexpr char kRankHung[] = "rank_hung";
inline constexpr char kRankFailed[] = "rank_failed";
inline constexpr char kDeviceLeftOut[] = "device_left_out";
inline constexpr char kCardLost[] = "card_lost";
inline constexpr char kProbePassed[] = "probe_passed";
inline constexpr char kProfile[] = "profile";
inline constexpr char kPredictionOff[] = "prediction_off";
inline constexpr char kContextAbovePlan[] = "context_above_plan";
inline constexpr char kMemoryLimit[] = "memory_limit";
inline constexpr char kHostMemoryShort[] = "host_memory_short";
inline constexpr char kSlowRank[] = "slow_rank";
inline constexpr char kPlan[] = "plan";
inline constexpr char kPinsDropped[] = "pins_dropped";
inline constexpr char kReplan[] = "replan";
inline constexpr char kCheckpoint[] = "checkpoint";
inline constexpr char kCheckpointFailed[] = "checkpoint_failed";
inline constexpr char kCheckpointSkipped[] = "checkpoint_skipped";
inline constexpr char kCheckpointSafe[] = "checkpoint_safe";
inline constexpr char kCopyFailed[] = "copy_failed";
inline constexpr char kInputFailed[] = "input_failed";
inline constexpr char kStoreOlder[] = "store_older";
inline constexpr char kStoreDamaged[] = "store_damaged";
inline constexpr char kStoreRestored[] = "store_restored";
inline constexpr char kBackupFailed[] = "backup_failed";
inline constexpr char kBackupWorks[] = "backup_works";
inline constexpr char kJobsForgotten[] = "jobs_forgotten";
inline constexpr char kEpochRaised[] = "generation_raised";
inline constexpr char kTokenMade[] = "token_made";
inline constexpr char kTokenRevoked[] = "token_revoked";
inline constexpr char kMemberAdded[] = "member_added";
inline constexpr char kMemberForgotten[] = "member_forgotten";
inline constexpr char kNodeCloned[] = "node_cloned";
inline constexpr char kJoinRefused[] = "join_refused";
inline constexpr char kAuthorityChanges[] = "authority_changes";
inline constexpr char kAuthorityChanged[] = "authority_changed";
inline constexpr char kRankBuildChanged[] = "rank_build_changed";
inline constexpr char kTakenOver[] = "taken_over";                // another coordinator has a higher term: this one ends
inline constexpr char kRivalCoordinator[] = "rival_coordinator";  // another one has the same term
inline constexpr char kCoordinatorStarted[] = "coordinator_started";
// What somebody has to do something about, by itself.
inline bool IsTrouble(std::string_view kind) {
  return kind == kBackupFailed || kind == kTakenOver || kind == kRivalCoordinator || kind == kStoreDamaged ||
         kind == kStoreOlder || kind == kNodeCloned;
}
}  // namespace kind

struct LogRecord {
  int64_t sequence = 0;  // of the job
  int64_t unix_ms = 0;
  std::string source;  // "coordinator", a node, or a device
  std::string text;
};

}  // namespace motley::coordinator
