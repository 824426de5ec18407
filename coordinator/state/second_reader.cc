#include "coordinator/state/second_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/state/decide.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// Nodes that see the job's folder and are used by it: the accuser's last.
std::vector<NodeName> Readers(const ClusterState& state, const JobRun& run) {
  const NodeName accuser = NodeOf(run.suspicion->accuser);
  std::vector<NodeName> readers;
  for (const DeviceDescription& device : UsableDevices(state, run)) {
    const NodeName node = NodeOf(device.id);
    if (node == accuser || !IsTrusted(state, run, node)) continue;
    if (readers.empty() || readers.back() != node) readers.push_back(node);
  }
  auto own = state.nodes.find(accuser);
  if (own != state.nodes.end() && own->second.connected) readers.push_back(accuser);
  return readers;
}

bool ReaderLives(const ClusterState& state, const Suspicion& suspicion) {
  auto node = state.nodes.find(suspicion.reader);
  return node != state.nodes.end() && node->second.connected && node->second.description.incarnation == suspicion.incarnation;
}

}  // namespace

std::optional<Decision> DecideSecondReader(absl::Duration now, const ClusterState& state, const DriverConfig& config) {
  const JobRun& run = *state.run;
  if (!run.suspicion) return std::nullopt;
  const Suspicion& suspicion = *run.suspicion;
  const NodeName accuser = NodeOf(suspicion.accuser);
  const std::string about = absl::StrCat("checkpoint ", suspicion.checkpoint, ", in which the rank on ",
                                         suspicion.accuser.value(), " found damage (", suspicion.complaint, "), ");
  if (suspicion.answer) {
    const StorageReport& answer = *suspicion.answer;
    if (answer.error.empty() && suspicion.reader == accuser) {
      return Decision{JudgeCheckpoint{Verdict::kReadAgain}, absl::StrCat(about, "verifies when its node reads it again")};
    }
    if (answer.error.empty()) {
      return Decision{JudgeCheckpoint{Verdict::kWhole},
                      absl::StrCat(about, "verifies on node ", suspicion.reader.value(), ": that node reads badly")};
    }
    if (answer.error_code == absl::StatusCode::kDataLoss) {
      return Decision{JudgeCheckpoint{Verdict::kDamaged},
                      absl::StrCat(about, "does not verify on node ", suspicion.reader.value(), ", either: ", answer.error)};
    }
  } else if (!suspicion.reader.empty() && ReaderLives(state, suspicion)) {
    const absl::Duration patience =
        config.storage_timeout + absl::Seconds(suspicion.bytes / config.slowest_restore_bytes_per_second);
    if (now - suspicion.asked <= patience) {
      return Decision{KeepOn{}, absl::StrCat(about, "is read by node ", suspicion.reader.value(), " before anybody is blamed")};
    }
  }
  for (const NodeName& reader : Readers(state, run)) {
    if (suspicion.tried.contains(reader)) continue;
    // It read it again before, found it whole, and its rank complains again.
    if (reader == accuser && run.read_twice.contains(suspicion.checkpoint)) break;
    return Decision{AskSecondReader{reader},
                    absl::StrCat(about, "is read by node ", reader.value(), " before anybody is blamed")};
  }
  const bool found_twice = suspicion.tried.contains(accuser) || run.read_twice.contains(suspicion.checkpoint);
  if (found_twice) {
    return Decision{JudgeCheckpoint{Verdict::kDamaged}, absl::StrCat(about, "can be read by no other node")};
  }
  return Decision{JudgeCheckpoint{Verdict::kReadAgain}, absl::StrCat(about, "can be read by nobody now")};
}

}  // namespace motley::coordinator
