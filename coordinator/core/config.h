// The coordinator's configuration: a TOML file and a few flags, read once in main.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/logging.h"
#include "coordinator/state/decide.h"

namespace motley::coordinator {

// How much of what only grows is kept: a lab's months.
struct RetentionConfig {
  int64_t events = 200000;   // [retention] events: the newest so many
  int64_t jobs = 1000;       // [retention] jobs: finished ones, the newest so many,
  int64_t days = 180;        // [retention] days: and none that finished longer ago
  int64_t epochs = 100;      // [retention] epochs: of each job
  int64_t profiles = 10000;  // [retention] profiles: measured last; others are measured again when they are needed
};

struct Config {
  // [server]: for people. Whoever may open the socket, or reach the address, commands the cluster (docs/use/security.md).
  std::optional<std::string> socket;       // socket: path of a Unix socket, mode 0660; not set: DefaultSocket(); empty = none
  std::string listen;                      // listen: host:port on loopback; empty = none, port 0 = any
  std::string metrics = "127.0.0.1:7071";  // metrics: host:port of /metrics; empty = none
  // owners: a job is its submitter's, by the Unix socket; others may look (docs/use/security.md). False: whoever gets in may do
  // all.
  bool owners = false;
  bool insecure = false;       // insecure: allow plaintext /metrics beyond loopback
  std::string addresses_file;  // --addresses: where to say which addresses were taken; empty = nowhere
  // [workers]
  std::string workers_listen = "127.0.0.1:7073";  // listen: host:port of the workers' sessions; empty = none, port 0 = any
  std::optional<std::string> workers_socket;  // socket: of this machine's own workers; not set: beside the people's; empty = none
  // accounts: names or numbers, whose processes may be workers by the socket besides root's, the coordinator's own and
  // motley-worker's.
  std::vector<std::string> worker_accounts;
  // tls: whether workers on `listen` show certificates. Not set: beyond loopback. Beyond loopback it may not be false.
  std::optional<bool> workers_tls;
  // certificate_days: how long a node's certificate is good; it is renewed when a third is left.
  absl::Duration certificate_lifetime = absl::Hours(24 * 30);
  std::string state_folder = "/var/lib/motley/coordinator";  // [state] folder
  // [backup]: where the store is backed up, on another machine than this one; empty = not at all. Nobody else may write there.
  std::string backup_folder;                        // folder
  absl::Duration backup_every = absl::Seconds(60);  // every: seconds; where something changed
  // [lease] seconds: a worker silent for longer is lost. Shorter notices a dead host sooner, longer survives a busy one.
  absl::Duration lease = absl::Seconds(10);
  // [server] stop_seconds: how long a stop may wait until the running job has saved. 0: not at all.
  absl::Duration stop = absl::Seconds(60);
  LogLevel log_level = LogLevel::kInfo;  // [log] level: debug, info, warning, error
  // [limits]: bounds of what is kept in memory.
  size_t updates_kept = 10000;           // updates: step records, events and states of a job for WatchJob
  size_t update_bytes_kept = 4 << 20;    // update_bytes: of a job
  size_t log_lines_kept = 10000;         // log_lines: of a job
  size_t log_bytes_kept = 4 << 20;       // log_bytes: of a job
  size_t jobs_with_rings = 32;           // jobs_with_logs: finished jobs beyond these lose both
  size_t waiting_job_bytes = 256 << 20;  // job_bytes: descriptions of all jobs that have not ended; more are refused
  size_t account_jobs = 100;         // account_jobs: of one account that have not ended, where jobs have owners; 0 = any number
  size_t people_connections = 4096;  // people_connections, workers_connections: at once; fewer where descriptors are few
  size_t worker_connections = 16384;
  size_t account_connections = 0;  // account_connections: of one account, root and the coordinator's own excepted; 0 = an eighth
  RetentionConfig retention;
  absl::Duration step_stored_every = absl::Seconds(2);  // a kill forgets at most these steps
  DriverConfig driver;
};

// INVALID_ARGUMENT names the key, its value and what is allowed.
absl::Status Validate(const Config& config);
// A sentence for each of workers.accounts that the machine does not know now: a slip, or a name of a directory server that does
// not answer yet. No error of Validate: whoever dials is asked for anew.
std::vector<std::string> UnknownAccounts(const Config& config);
// NOT_FOUND / INVALID_ARGUMENT with file and line; an unknown key is an error that names the nearest one.
absl::Status LoadConfigFile(const std::string& path, Config* config);
// The same of its text; `source` names it in errors.
absl::Status ParseConfig(std::string_view text, const std::string& source, Config* config);
// Where people find the coordinator: config.socket, or /run/motley/coordinator.sock where that folder is there and writable (the
// service's), else people/coordinator.sock in the state folder. Empty: no socket.
std::string SocketPath(const Config& config);
// Where workers of the same machine find it: config.workers_socket, or workers.sock beside config.socket, or in the same places
// where that is not set, unless its path is longer than a socket's may be. Empty: no socket.
std::string WorkersSocketPath(const Config& config);
// Whether workers on workers.listen show certificates. False where there is none.
bool WorkersUseTls(const Config& config);

}  // namespace motley::coordinator
