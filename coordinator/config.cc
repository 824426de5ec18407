#include "coordinator/config.h"

#include <toml++/toml.h>

#include <functional>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/nearest.h"
#include "common/status_macros.h"

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

// Counts and sizes: 0 would keep nothing, and what is beyond the upper end is a mistake.
template <typename Integer>
Key Count(Integer* out) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  return {absl::StrCat("a whole number from 1 to ", kLargest), [out](const toml::node& node) {
            const auto value = node.value_exact<int64_t>();
            if (!value || *value < 1 || *value > kLargest) return false;
            *out = static_cast<Integer>(*value);
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
      {"server.listen", {"\"host:port\"", Text(&config->listen)}},
      {"server.metrics", {"\"host:port\" or \"\"", Text(&config->metrics)}},
      {"server.insecure",
       {"true or false",
        [config](const toml::node& node) {
          if (auto value = node.value_exact<bool>()) return config->insecure = *value, true;
          return false;
        }}},
      {"server.stop_seconds",
       {"a number",
        [config](const toml::node& node) {
          if (auto value = node.value<double>()) return config->stop = absl::Seconds(*value), true;
          return false;
        }}},
      {"state.folder", {"a path", Text(&config->state_folder)}},
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

absl::Status CheckAddress(const std::string& key, const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(key, " must be host:port, got '", address, "'"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || absl::StartsWith(host, "127.");
}

absl::Status Validate(const Config& config) {
  MOTLEY_RETURN_IF_ERROR(CheckAddress("server.listen", config.listen));
  if (!config.metrics.empty()) MOTLEY_RETURN_IF_ERROR(CheckAddress("server.metrics", config.metrics));
  if (config.state_folder.empty()) return absl::InvalidArgumentError("state.folder must be a path, got ''");
  if (config.lease < absl::Milliseconds(500) || config.lease > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("lease.seconds must be from 0.5 to 3600, got ", absl::ToDoubleSeconds(config.lease)));
  }
  if (!(config.stop >= absl::ZeroDuration() && config.stop <= absl::Hours(1))) {
    return absl::InvalidArgumentError(
        absl::StrCat("server.stop_seconds must be from 0 to 3600, got ", absl::ToDoubleSeconds(config.stop)));
  }
  for (const auto& [key, address] : {std::pair("server.listen", config.listen), std::pair("server.metrics", config.metrics)}) {
    if (address.empty() || IsLoopback(address) || config.insecure) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(key, " = '", address,
                     "' is not a loopback address, and the listener has neither TLS nor "
                     "passwords: whoever reaches it commands the cluster. Use a loopback address, or set "
                     "server.insecure = true (--insecure) if the network is trusted"));
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
