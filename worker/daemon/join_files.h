// What a node needs besides its identity, as text: the worker's configuration, and what its unit may write.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/daemon/config.h"

namespace motley::worker {

struct JoinedNode {
  std::string name;
  std::vector<std::string> coordinators;  // the first one is the cluster's now
  std::string identity, data_address;
  std::vector<std::string> roots;
};

// worker.toml. ParseWorkerConfig and Validate take it.
std::string WorkerToml(const JoinedNode& node);
// A drop-in of motley-worker.service: what the unit would see read-only and jobs, or the renewal of its certificate, write. A
// folder that is not there when the service starts does not stop it.
std::string UnitDropIn(const std::vector<std::string>& folders);
// Whether a configuration that is there already, its name filled in, is of this node: it is kept then. FAILED_PRECONDITION names
// the key that differs.
absl::Status CheckKept(const WorkerConfig& there, const JoinedNode& node, const std::string& path);

}  // namespace motley::worker
