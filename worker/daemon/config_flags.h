// Flags of motley-worker that stand for keys of its configuration: what differs by node, so that one file, or none, is enough for
// all nodes.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "worker/daemon/config.h"

namespace motley::worker {

struct ConfigFlags {
  std::string node;
  std::vector<std::string> coordinators;
  std::string data_address;
  std::string identity;
  std::vector<std::string> roots;
  std::string files;
  std::string metrics;
  bool no_metrics = false;
  std::optional<int64_t> cores;
  std::optional<double> stop_seconds;
  std::string rank_binary;
  bool insecure = false;
  std::vector<std::string> cards;  // "0", or the beginning of a UUID, "GPU-8f6c"

  void AddTo(CLI::App& app);
  // Those that were given replace what the file says.
  void Apply(WorkerConfig& config) const;
  // Whether one was given that --join does not write into the configuration.
  bool HasMoreThanJoinWrites() const;
};

}  // namespace motley::worker
