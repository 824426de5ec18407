// Opens NCCL at run time. It stays open: it has threads of its own. docs/inside/nccl.md
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/engine/nccl/nccl_api.h"

namespace motley::engine {

inline constexpr char kNcclName[] = "libnccl.so.2";
// The first one with all that is used.
inline constexpr int kOldestNccl = 21800;
// Compute capability: NCCL's builds have no kernels for older cards.
inline constexpr int kOldestCardForNccl = 6;

struct NcclLibrary {
  NcclApi api;
  int version = 0;   // 22809 is 2.28.9
  std::string path;  // where the loader found it
};

// `name`: a path, or a name for the loader's folders. FAILED_PRECONDITION: it is not there, is too old, lacks a function or does
// not say its version; the message has the place and the remedy.
absl::StatusOr<NcclLibrary> OpenNccl(const std::string& name = kNcclName);

// Whether this process can make a communicator's id, for which NCCL lists the machine's network interfaces. To be called after
// PrepareNcclEnvironment. UNAVAILABLE: no communicator can be made; NCCL's own words, and what mostly forbids it.
absl::Status CheckNcclMakesIds(const NcclLibrary& nccl);

// To be called before the process's first use of NCCL and before it has threads that read its environment. Sets what this engine
// relies on, whatever the user has set: calls that do not block, no order between communicators, connections made at the start,
// the kernels' stacks too (a kernel that needs a larger one has the driver wait for the card, which a receive may keep busy).
// Where the user has not set it: several ranks on one card where NCCL can (2.30), and the interface of `data_address` for NCCL's
// sockets (empty: NCCL chooses), no RoCE port through which no peer is reached.
void PrepareNcclEnvironment(const std::string& data_address);

}  // namespace motley::engine
