#include "coordinator/core/config.h"

#include <sys/un.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/accounts.h"
#include "common/base/address.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/base/written_path.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kLargestConfigBytes = 1 << 20;

using Setter = std::function<bool(const toml::node&)>;  // false: wrong type or value

struct Key {
  std::string expected;
  Setter set;
};

Setter Text(std::string* out) {
  return [out](const toml::node& node) {
    auto value = node.value_exact<std::string>();
    if (value) *out = *value;
    return value.has_value();
  };
}

Key Flag(bool* out) {
  return {"true or false", [out](const toml::node& node) {
            auto value = node.value_exact<bool>();
            if (value) *out = *value;
            return value.has_value();
          }};
}

// Counts and sizes: 0 would keep nothing, but for limits that it takes away; what is beyond the upper end is a mistake.
template <typename Integer>
Key Count(Integer* out, int64_t least = 1) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  return {absl::StrCat("a whole number from ", least, " to ", kLargest), [out, least](const toml::node& node) {
            const auto value = node.value_exact<int64_t>();
            if (!value || *value < least || *value > kLargest) return false;
            *out = static_cast<Integer>(*value);
            return true;
          }};
}

// Names, or numbers; whether there are such accounts is for Validate.
Key Accounts(std::vector<std::string>* out) {
  return {"a list of accounts, by name or number", [out](const toml::node& node) {
            const toml::array* list = node.as_array();
            if (list == nullptr) return false;
            std::vector<std::string> accounts;
            for (const toml::node& entry : *list) {
              const auto name = entry.value_exact<std::string>();
              const auto number = entry.value_exact<int64_t>();
              if (!name && !number) return false;
              accounts.push_back(name ? *name : absl::StrCat(*number));
            }
            *out = std::move(accounts);
            return true;
          }};
}

bool SetLevel(const toml::node& node, LogLevel* level) {
  static const std::map<std::string, LogLevel> kLevels = {
      {"debug", LogLevel::kDebug}, {"info", LogLevel::kInfo}, {"warning", LogLevel::kWarning}, {"error", LogLevel::kError}};
  auto it = kLevels.find(node.value_or(std::string()));
  if (it == kLevels.end()) return false;
  *level = it->second;
  return true;
}

std::map<std::string, Key> Keys(Config* config) {
  return {
      {"server.socket",
       {"a path or \"\"",
        [config](const toml::node& node) {
          if (auto value = node.value_exact<std::string>()) return config->socket = *value, true;
          return false;
        }}},
      {"server.listen", {"\"host:port\" or \"\"", Text(&config->listen)}},
      {"server.metrics", {"\"host:port\" or \"\"", Text(&config->metrics)}},
      {"server.owners", Flag(&config->owners)},
      {"server.insecure", Flag(&config->insecure)},
      {"workers.listen", {"\"host:port\" or \"\"", Text(&config->workers_listen)}},
      {"workers.accounts", Accounts(&config->worker_accounts)},
      {"workers.socket",
       {"a path or \"\"",
        [config](const toml::node& node) {
          if (auto value = node.value_exact<std::string>()) return config->workers_socket = *value, true;
          return false;
        }}},
      {"workers.tls",
       {"true or false",
        [config](const toml::node& node) {
          if (auto value = node.value_exact<bool>()) return config->workers_tls = *value, true;
          return false;
        }}},
      {"workers.certificate_days",
       {"a number of days",
        [config](const toml::node& node) {
          if (auto value = node.value<double>()) return config->certificate_lifetime = absl::Hours(24) * *value, true;
          return false;
        }}},
      {"workers.insecure",
       {"left out: nodes beyond this machine join with a token ('motley node token' here, 'motley-worker --join TOKEN' there)",
        [](const toml::node& node) { return node.value_exact<bool>() == false; }}},
      {"server.stop_seconds",
       {"a number",
        [config](const toml::node& node) {
          if (auto value = node.value<double>()) return config->stop = absl::Seconds(*value), true;
          return false;
        }}},
      {"state.folder", {"a path", Text(&config->state_folder)}},
      {"backup.folder", {"a path", Text(&config->backup_folder)}},
      {"backup.every",
       {"a number of seconds",
        [config](const toml::node& node) {
          if (auto value = node.value<double>()) return config->backup_every = absl::Seconds(*value), true;
          return false;
        }}},
      {"lease.seconds",
       {"a number",
        [config](const toml::node& node) {
          if (auto value = node.value<double>()) return config->lease = absl::Seconds(*value), true;
          return false;
        }}},
      {"retention.events", Count(&config->retention.events)},
      {"retention.jobs", Count(&config->retention.jobs)},
      {"retention.days", Count(&config->retention.days)},
      {"retention.epochs", Count(&config->retention.epochs)},
      {"retention.profiles", Count(&config->retention.profiles)},
      {"limits.updates", Count(&config->updates_kept)},
      {"limits.update_bytes", Count(&config->update_bytes_kept)},
      {"limits.log_lines", Count(&config->log_lines_kept)},
      {"limits.log_bytes", Count(&config->log_bytes_kept)},
      {"limits.jobs_with_logs", Count(&config->jobs_with_rings)},
      {"limits.job_bytes", Count(&config->waiting_job_bytes)},
      {"limits.account_jobs", Count(&config->account_jobs, 0)},
      {"limits.people_connections", Count(&config->people_connections)},
      {"limits.account_connections", Count(&config->account_connections, 0)},
      {"limits.workers_connections", Count(&config->worker_connections)},
      {"log.level",
       {"debug, info, warning or error", [config](const toml::node& node) { return SetLevel(node, &config->log_level); }}},
  };
}

std::string Place(const std::string& path, const toml::node& node) { return absl::StrCat(path, ":", node.source().begin.line); }

absl::Status UnknownKey(const std::string& place, const std::string& name, const std::map<std::string, Key>& keys) {
  std::vector<std::string> known;
  for (const auto& [key, unused] : keys) known.push_back(key);
  const std::string nearest = NearestWord(name, known);
  return absl::InvalidArgumentError(absl::StrCat(
      place, ": unknown key '", name, "'",
      nearest.empty() ? absl::StrCat("; known: ", absl::StrJoin(known, ", ")) : absl::StrCat("; did you mean '", nearest, "'?")));
}

constexpr char kRunFolder[] = "/run/motley";
constexpr char kPeopleFolder[] = "people";  // in the state folder, whose files are nobody else's

// Plaintext without passwords may leave the machine only where somebody said so.
absl::Status CheckReach(const std::string& key, const std::string& address, bool insecure, const std::string& danger,
                        const std::string& remedy) {
  MOTLEY_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(key, address, 0));
  if (insecure || IsLoopback(parsed.host)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(key, " = '", address,
                                                 "' is not a loopback address, and the listener has neither TLS "
                                                 "nor passwords: ",
                                                 danger, ". ", remedy));
}

absl::Status CheckWorkersListeners(const Config& config) {
  const std::string socket = WorkersSocketPath(config);
  if (config.workers_listen.empty()) {
    if (!socket.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "workers.listen is empty, and there is no socket for workers either (workers.socket = \"\", or its path is too long): "
        "no worker could come; set one");
  }
  MOTLEY_RETURN_IF_ERROR(CheckReach("workers.listen", config.workers_listen, WorkersUseTls(config),
                                    "whoever reaches it can say to be a worker",
                                    "Leave workers.tls out: nodes then join with a token (motley node token)"));
  if (!config.owners || WorkersUseTls(config)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("server.owners = true, and workers.listen = '", config.workers_listen,
                                                 "' takes workers that show nothing: every account of this machine could be one "
                                                 "and change others' jobs. Say workers.listen = "
                                                 "\"\"; the machine's own workers come by a socket, with ",
                                                 socket.empty()
                                                     ? "workers.socket here and its path in worker.coordinator"
                                                     : absl::StrCat("worker.coordinator = \"unix:", socket, "\" in worker.toml"),
                                                 ". Or ask for certificates there too (workers.tls = true)"));
}

absl::Status CheckListeners(const Config& config) {
  if (config.listen.empty() && SocketPath(config).empty()) {
    return absl::InvalidArgumentError(
        "server.socket and server.listen are both empty: nobody could reach the coordinator; set one");
  }
  if (!config.listen.empty()) {
    MOTLEY_RETURN_IF_ERROR(CheckReach("server.listen", config.listen, false, "whoever reaches it commands the cluster",
                                      "Use the socket or a loopback address; from elsewhere forward one of them (ssh -L)"));
  }
  if (!config.metrics.empty()) {
    MOTLEY_RETURN_IF_ERROR(
        CheckReach("server.metrics", config.metrics, config.insecure, "whoever reaches it reads jobs and losses",
                   "Use a loopback address, or set server.insecure = true (--insecure) if the network is trusted"));
  }
  return CheckWorkersListeners(config);
}

std::string PathInSocketFolder(const Config& config, const char* name) {
  if (config.socket && !config.socket->empty()) {
    const size_t slash = config.socket->rfind('/');
    return slash == std::string::npos ? name : absl::StrCat(config.socket->substr(0, slash + 1), name);
  }
  const std::string folder =
      access(kRunFolder, W_OK) == 0 ? std::string(kRunFolder) : absl::StrCat(config.state_folder, "/", kPeopleFolder);
  return absl::StrCat(folder, "/", name);
}

// The coordinator's user may have another home than whoever wrote the file.
absl::Status CheckWrittenPaths(const Config& config) {
  const std::pair<const char*, std::string> paths[] = {{"state.folder", config.state_folder},
                                                       {"backup.folder", config.backup_folder},
                                                       {"server.socket", config.socket.value_or("")},
                                                       {"workers.socket", config.workers_socket.value_or("")}};
  for (const auto& [key, path] : paths) {
    if (path.starts_with('/')) continue;  // it may be called so
    const std::string why = WhyNoPath(path, Patterns::kTake);
    if (!why.empty()) return absl::InvalidArgumentError(absl::StrCat(key, ": ", Quoted(path), " ", why));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> UnknownAccounts(const Config& config) {
  std::vector<std::string> unknown;
  for (const std::string& account : config.worker_accounts) {
    // A database that does not answer now may do so when somebody comes.
    if (!absl::IsNotFound(UidOfAccount(account).status())) continue;
    unknown.push_back(absl::StrCat("workers.accounts: ", Quoted(account),
                                   " is no account of this machine; 'getent passwd' lists them, and a number needs none"));
  }
  return unknown;
}

std::string SocketPath(const Config& config) {
  return config.socket ? *config.socket : PathInSocketFolder(config, "coordinator.sock");
}

std::string WorkersSocketPath(const Config& config) {
  if (config.workers_socket) return *config.workers_socket;
  // Where nobody asked for one it is no reason not to start.
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  std::string path = PathInSocketFolder(config, "workers.sock");
  return path.size() <= kLongest ? path : "";
}

bool WorkersUseTls(const Config& config) {
  if (config.workers_listen.empty()) return false;
  if (config.workers_tls) return *config.workers_tls;
  const absl::StatusOr<HostPort> parsed = ParseHostPort("workers.listen", config.workers_listen, 0);
  return parsed.ok() && !IsLoopback(parsed->host);
}

absl::Status Validate(const Config& config) {
  MOTLEY_RETURN_IF_ERROR(CheckListeners(config));
  MOTLEY_RETURN_IF_ERROR(CheckWrittenPaths(config));
  if (config.state_folder.empty()) return absl::InvalidArgumentError("state.folder must be a path, got ''");
  if (!(config.backup_every >= absl::Seconds(1) && config.backup_every <= absl::Hours(24))) {
    return absl::InvalidArgumentError(
        absl::StrCat("backup.every must be from 1 to 86400 seconds, got ", absl::ToDoubleSeconds(config.backup_every)));
  }
  if (!(config.certificate_lifetime >= absl::Seconds(30) && config.certificate_lifetime <= absl::Hours(24 * 365))) {
    return absl::InvalidArgumentError(absl::StrCat("workers.certificate_days must be from 0.00035 (30 seconds) to 365, got ",
                                                   absl::ToDoubleHours(config.certificate_lifetime) / 24));
  }
  if (config.lease < absl::Milliseconds(500) || config.lease > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("lease.seconds must be from 0.5 to 3600, got ", absl::ToDoubleSeconds(config.lease)));
  }
  if (!(config.stop >= absl::ZeroDuration() && config.stop <= absl::Hours(1))) {
    return absl::InvalidArgumentError(
        absl::StrCat("server.stop_seconds must be from 0 to 3600, got ", absl::ToDoubleSeconds(config.stop)));
  }
  return absl::OkStatus();
}

absl::Status LoadConfigFile(const std::string& path, Config* config) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kLargestConfigBytes));
  return ParseConfig(text, path, config);
}

absl::Status ParseConfig(std::string_view text, const std::string& path, Config* config) {
  toml::table root;
  try {
    root = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", e.source().begin.line, ": ", std::string(e.description())));
  }
  const std::map<std::string, Key> keys = Keys(config);
  for (const auto& [section, node] : root) {
    const std::string section_name(section.str());
    const toml::table* table = node.as_table();
    if (table == nullptr) return UnknownKey(Place(path, node), section_name, keys);
    for (const auto& [key, value] : *table) {
      const std::string name = absl::StrCat(section_name, ".", std::string(key.str()));
      auto it = keys.find(name);
      if (it == keys.end()) return UnknownKey(Place(path, value), name, keys);
      if (!it->second.set(value)) {
        return absl::InvalidArgumentError(absl::StrCat(Place(path, value), ": ", name, " must be ", it->second.expected));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace motley::coordinator
