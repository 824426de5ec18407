#include "coordinator/state/cause.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/altered_way.h"
#include "common/base/peer_ended.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// What a rank saw of another one, or of the way to it.
bool IsOfPeers(const Failure& failure) {
  return failure.kind == FailureKind::kPeerLost || (failure.kind == FailureKind::kProfile && failure.fault == Fault::kPeer);
}

bool IsConsequence(FailureKind kind) { return kind == FailureKind::kPeerLost || kind == FailureKind::kProfile; }

// Of consequences alone. A measurement that failed by itself is what its peers lost. Where a network falls silent, the first
// ranks to notice end and close their connections to others, who may be heard first.
const Failure& MostTelling(const std::vector<Failure>& failures) {
  const auto first = [&](auto tells) {
    const auto found = std::find_if(failures.begin(), failures.end(), tells);
    return found == failures.end() ? nullptr : &*found;
  };
  if (const Failure* own = first([](const Failure& failure) { return !IsOfPeers(failure); })) return *own;
  if (const Failure* more = first([](const Failure& failure) { return !SaysPeerEnded(failure.message); })) return *more;
  return failures.front();
}

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
  return MostTelling(failures);
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
      if (RemedyFor(failure) == Remedy::kWaitForStorage) {
        return absl::StrCat("the rank on ", failure.device.value(), " cannot use its files now", tail);
      }
      if (RemedyFor(failure) == Remedy::kSecondReader) {
        return absl::StrCat("the rank on ", failure.device.value(), " found checkpoint ", failure.damaged_checkpoint, " damaged",
                            tail);
      }
      if (RemedyFor(failure) == Remedy::kLessMemory) {
        return absl::StrCat("the rank on ", failure.device.value(), " ran out of memory", tail);
      }
      return absl::StrCat("the rank on ", failure.device.value(), " failed", tail);
    case FailureKind::kNonFinite:
      return absl::StrCat("training diverged", tail);  // which says where it was first; whoever is heard first found it later
    case FailureKind::kProfile:
      return absl::StrCat("profiling on node ", failure.node.value(), " failed", tail);
    case FailureKind::kPeerLost:
      if (SaysAltered(failure.message)) {
        return absl::StrCat("a message between ranks was altered; said by the rank on ", failure.device.value(), tail);
      }
      return absl::StrCat("the ranks lost each other and nobody said why; said by the rank on ", failure.device.value(), tail);
  }
  return failure.message;
}

Remedy RemedyFor(const Failure& failure) {
  switch (failure.kind) {
    case FailureKind::kNodeLost:
    case FailureKind::kPeerLost:
      return Remedy::kReplan;
    case FailureKind::kDied:
    case FailureKind::kHung:
      return Remedy::kRestart;
    case FailureKind::kNonFinite:
      return Remedy::kEnd;
    case FailureKind::kProfile:
      return failure.fault == Fault::kPeer ? Remedy::kReplan : Remedy::kEnd;
    case FailureKind::kFailed:
      break;
  }
  switch (failure.fault) {
    case Fault::kPeer:
      return Remedy::kReplan;
    case Fault::kStorage:
      return Remedy::kWaitForStorage;
    case Fault::kDamage:
      return failure.damaged_checkpoint.empty() ? Remedy::kEnd : Remedy::kSecondReader;
    case Fault::kNode:
      return Remedy::kWithoutNode;
    case Fault::kMemory:
      return Remedy::kLessMemory;
    case Fault::kOurs:
      break;
  }
  return Remedy::kEnd;
}

bool EndsJob(const ClusterState& state, const JobRun& run, const Failure& failure) {
  const Remedy remedy = RemedyFor(failure);
  if (remedy != Remedy::kWithoutNode) return remedy == Remedy::kEnd;
  const NodeName odd = NodeOf(failure.device);
  if (std::any_of(run.odd_nodes.begin(), run.odd_nodes.end(), [&](const NodeName& node) { return node != odd; })) return true;
  const std::vector<DeviceDescription> usable = UsableDevices(state, run);
  return std::all_of(usable.begin(), usable.end(), [&](const DeviceDescription& device) { return NodeOf(device.id) == odd; });
}

absl::Duration PauseAfter(Remedy remedy, int times) {
  // Short at first: most causes are gone at once. The last one is what a network costs at the most after it has healed.
  static constexpr std::array<double, 5> kSeconds = {0.5, 1, 2, 4, 5};
  // A disk or a mount that somebody has to mend.
  static constexpr std::array<double, 6> kStorageSeconds = {1, 2, 4, 8, 15, 30};
  const bool at_once = remedy == Remedy::kSecondReader || remedy == Remedy::kWithoutNode || remedy == Remedy::kLessMemory;
  if (times <= 0 || at_once) return absl::ZeroDuration();
  const auto turn = static_cast<size_t>(times - 1);
  return absl::Seconds(remedy == Remedy::kWaitForStorage ? kStorageSeconds[std::min(turn, kStorageSeconds.size() - 1)]
                                                         : kSeconds[std::min(turn, kSeconds.size() - 1)]);
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
      if (RemedyFor(failure) == Remedy::kWaitForStorage) return "storage";
      if (RemedyFor(failure) == Remedy::kLessMemory) return "out_of_memory";
      return RemedyFor(failure) == Remedy::kSecondReader ? "checkpoint_damaged" : "rank_failed";
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
