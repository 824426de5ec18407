// motley-worker --join: from a token to a node that runs.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace motley::worker {

struct JoinOptions {
  std::string token;       // as given; or
  std::string token_file;  // a file that holds it, "-" for stdin: arguments are seen in ps
  // host:port of its workers' sessions, the present one first; others may be it one day.
  std::vector<std::string> coordinators;
  std::string node;          // the name that it wants
  std::string config;        // where worker.toml is written; one that is there is kept,
  std::string as_installed;  // unless it is the same as this one: a file that came with the program is nobody's choice
  std::string identity;      // folder of key and certificate
  std::string data_address;  // empty: this machine's end of the way to the coordinator
  std::vector<std::string> roots;
};
inline constexpr char kUsualConfig[] = "/etc/motley/worker.toml";

// Joins and writes what the node needs; says what it does and what to do next. Where systemd runs and this is root, the service
// is started with what it may write. JoinCluster's errors; INVALID_ARGUMENT: the token, a flag; FAILED_PRECONDITION: a
// configuration of another node is there.
absl::Status Join(const JoinOptions& options, bool foreground, std::ostream& out);

}  // namespace motley::worker
