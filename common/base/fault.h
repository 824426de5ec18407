// Whose fault an error is, and so what helps: the one table of errors (docs/use/errors.md). A status carries it as a payload, so
// that it survives the way from the place that knows (a read, a collective) to whoever decides.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace motley {

enum class Fault {
  kOurs,     // a bug, a wrong configuration: it repeats by itself, so the job ends
  kPeer,     // a connection between ranks broke: a consequence, or the network; tried again when the peers reach each other
  kStorage,  // a file cannot be read or written now (EIO, EACCES, a full disk): tried again with growing pauses
  kDamage,   // a file is not what was written: what is damaged is left out, the one before is used
  kNode,  // this machine refuses what others grant (EINVAL of a mount's fsync): it is left out; the job ends when another says so
  kMemory,  // a device's memory is full (memory_shortage.h): its limit is corrected, and the job is planned again
};

// The same status with its fault; OK stays OK.
absl::Status WithFault(absl::Status status, Fault fault);
// What WithFault said; else kDamage for DATA_LOSS, and kOurs for everything that nobody claimed.
Fault FaultOf(const absl::Status& status);

// Fault::kDamage of a checkpoint: carries its folder along. Other errors stay as they are.
absl::Status WithDamagedCheckpoint(absl::Status status, const std::string& folder);
std::string DamagedCheckpointOf(const absl::Status& status);  // empty: none

// The device whose machine is to blame for what several did together, where that is known; other errors stay as they are.
absl::Status WithBlamedDevice(absl::Status status, const std::string& device);
std::string BlamedDeviceOf(const absl::Status& status);  // empty: nobody, or not known

std::string_view FaultName(Fault fault);                 // "ours", "peer", "storage", "damage", "node", "memory"
std::optional<Fault> ParseFault(std::string_view name);  // null: no such name

}  // namespace motley
