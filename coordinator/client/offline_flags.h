// The flags of the commands that need no coordinator: which cluster, which model, which batch, with what measurements, and what
// the plan may be.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/client/command.h"
#include "coordinator/client/exit_code.h"
#include "planner/setting/setting.h"

namespace motley::client {

struct OfflineFlags {
  std::string cluster, model;
  std::string dtype = "float32";          // empty: the basis's
  int64_t global_batch = 0, seq_len = 0;  // 0 = not given
  std::vector<std::string> profiles;
  std::string strategy = "auto", fidelity = "tuned", recompute, offload;  // the last two: empty: auto, or the job's
  std::optional<bool> runnable;                                           // not given: the basis's
  std::optional<int> zero_stage;
  std::vector<std::string> pins, exclude;
  int max_tp = planner::PlanRequest().max_tp;
  std::string memory_reserve, budget_nodes, deadline;
  int64_t state_bytes_per_parameter = 0;  // 0 = not given
};

// --cluster, --model, --global-batch, --seq-len, --dtype, --profiles.
void AddSettingFlags(CLI::App& app, OfflineFlags* flags);
// --strategy, --fidelity, --zero-stage, --pin, --exclude, --max-tp, --recompute, --offload, --runnable,
// --state-bytes-per-parameter, --memory-reserve, --budget-nodes, --deadline.
void AddRequestFlags(CLI::App& app, OfflineFlags* flags);

// --state-bytes-per-parameter alone.
void AddStateBytesFlag(CLI::App& app, OfflineFlags* flags);
// --runnable and its opposite alone.
void AddRunnableFlag(CLI::App& app, const std::string& what, OfflineFlags* flags);

// What the flags name, loaded. The book must outlive what reads it.
struct OfflineInput {
  std::unique_ptr<planner::Setting> setting;
  std::unique_ptr<planner::LatencyBook> book;  // nullptr: no --profiles
  std::vector<std::string> warnings;           // what the model's price leaves out; profiles of which nothing is used
};
// What planning starts from, from files or from a live cluster.
struct OfflineBasis {
  planner::Cluster cluster;
  planner::Workload workload;
  std::unique_ptr<planner::LatencyBook> book;  // may be nullptr
  planner::PlanRequest request;  // what flags that are not given leave as it is: recomputation, pins, whether it must run
};
// Exit 64: a flag is missing or wrong. 66: a file or preset is not there, or a pinned or excluded device. 65: what is in them is
// wrong.
Exit LoadOffline(const OfflineFlags& flags, OfflineInput* input);
// The request's flags by themselves, with --dtype where it is given. Exit 64 says all that is wrong.
Exit CheckRequest(const OfflineFlags& flags);
// The request's flags and --profiles on top of `basis`; --global-batch, --seq-len and --dtype replace its own where they are
// given.
Exit FinishOffline(const OfflineFlags& flags, OfflineBasis basis, OfflineInput* input);

// Like FromServer, but what does not fit is an answer (65) and no reason to try again later.
Exit FromPlanner(const absl::Status& status);

// A line for each on `err`.
void Warn(std::ostream& err, const std::vector<std::string>& warnings);

// The way out of a command whose output file cannot be made: 73; a full disk stays 74.
Exit FromOutput(const absl::Status& status);

// Files that people or we wrote. 66: not there, or a directory. 65: too large to be one.
Exit ReadText(const std::string& path, int64_t limit_bytes, std::string* text);

}  // namespace motley::client
