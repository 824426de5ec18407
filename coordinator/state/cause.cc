#include "coordinator/state/cause.h"

#include "absl/strings/str_cat.h"

namespace motley::coordinator {
namespace {

bool IsConsequence(FailureKind kind) { return kind == FailureKind::kPeerLost || kind == FailureKind::kProfile; }

}  // namespace

std::optional<Failure> FirstCause(absl::Duration now, const std::vector<Failure>& failures, const CauseConfig& config) {
  const Failure* hung = nullptr;
  for (const Failure& failure : failures) {
    if (failure.kind == FailureKind::kHung) {
      if (hung == nullptr) hung = &failure;
    } else if (!IsConsequence(failure.kind)) {
      return failure;
    }
  }
  if (hung != nullptr) {
    if (now - hung->at < config.hung_wait) return std::nullopt;
    return *hung;
  }
  if (failures.empty() || now - failures.front().at < config.peer_lost_wait) return std::nullopt;
  return failures.front();
}

std::string Describe(const Failure& failure) {
  const std::string tail = failure.message.empty() ? "" : absl::StrCat(": ", failure.message);
  switch (failure.kind) {
    case FailureKind::kNodeLost:
      return absl::StrCat("node ", failure.node.value(), " was lost", tail);
    case FailureKind::kDied:
      return absl::StrCat("the rank on ", failure.device.value(), " died", tail);
    case FailureKind::kHung:
      return absl::StrCat("the rank on ", failure.device.value(), " made no progress", tail);
    case FailureKind::kFailed:
      return absl::StrCat("the rank on ", failure.device.value(), " failed", tail);
    case FailureKind::kNonFinite:
      return absl::StrCat("training diverged on ", failure.device.value(), tail);
    case FailureKind::kProfile:
      return absl::StrCat("profiling on node ", failure.node.value(), " failed", tail);
    case FailureKind::kPeerLost:
      return absl::StrCat("the rank on ", failure.device.value(), " lost its peers and nobody said why", tail);
  }
  return failure.message;
}

bool IsFatal(const Failure& failure) {
  return failure.kind == FailureKind::kFailed || failure.kind == FailureKind::kNonFinite || failure.kind == FailureKind::kProfile;
}

const std::vector<std::string>& CauseLabels() {
  static const auto* const labels =
      new std::vector<std::string>{"node_lost",      "rank_died", "rank_hung", "rank_failed", "nonfinite",
                                   "profile_failed", "peer_lost", "joined",    "drained",     "coordinator_restarted",
                                   "older_store",    "start_timeout"};
  return *labels;
}

std::string CauseLabel(const Failure& failure) {
  switch (failure.kind) {
    case FailureKind::kNodeLost:
      return "node_lost";
    case FailureKind::kDied:
      return "rank_died";
    case FailureKind::kHung:
      return "rank_hung";
    case FailureKind::kFailed:
      return "rank_failed";
    case FailureKind::kNonFinite:
      return "nonfinite";
    case FailureKind::kProfile:
      return "profile_failed";
    case FailureKind::kPeerLost:
      return "peer_lost";
  }
  return "other";
}

}  // namespace motley::coordinator
