#include "worker/daemon/config.h"

#include <limits.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/address.h"
#include "common/base/beneath.h"
#include "common/base/clean_text.h"
#include "common/base/data_way.h"
#include "common/base/files.h"
#include "common/base/names.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/base/written_path.h"
#include "common/device/device_kinds.h"
#include "common/device/device_ranges.h"
#include "common/session/session.h"
#include "worker/daemon/emulation_check.h"

namespace motley::worker {
namespace {

constexpr int64_t kLargestConfigBytes = 1 << 20;

struct Key {
  const char* expected;
  std::function<bool(const toml::node&)> set;  // false: wrong type
};
using Keys = std::map<std::string, Key>;

Key Text(std::string& out) {
  return {"a text", [&out](const toml::node& node) {
            auto value = node.value_exact<std::string>();
            if (value) out = *value;
            return value.has_value();
          }};
}
Key Flag(bool& out) {
  return {"true or false", [&out](const toml::node& node) {
            auto value = node.value_exact<bool>();
            if (value) out = *value;
            return value.has_value();
          }};
}
Key Number(double& out) {
  return {"a number", [&out](const toml::node& node) {
            if (!node.is_number()) return false;
            out = *node.value<double>();
            return true;
          }};
}
Key Whole(const char* what, int64_t& out) {
  return {what, [&out](const toml::node& node) {
            if (!node.is_number()) return false;
            const double value = *node.value<double>();
            if (value != std::floor(value) || std::abs(value) > 9e15) return false;
            out = static_cast<int64_t>(value);
            return true;
          }};
}
Key Index(std::optional<int64_t>& out) {
  return {"a whole number from 0", [&out](const toml::node& node) {
            const auto value = node.value_exact<int64_t>();
            if (!value || *value < 0) return false;
            out = *value;
            return true;
          }};
}
Key Authentication(DataAuthentication& out) {
  return {"'between-machines', 'always' or 'never'", [&out](const toml::node& node) {
            const auto value = node.value_exact<std::string>();
            const std::optional<DataAuthentication> named = value ? ParseDataAuthentication(*value) : std::nullopt;
            if (named) out = *named;
            return named.has_value();
          }};
}
Key Bytes(int64_t& out) { return Whole("a whole number of bytes", out); }
Key MaybeBytes(std::optional<int64_t>& out) {
  return {"a whole number of bytes", [&out](const toml::node& node) { return Bytes(out.emplace()).set(node); }};
}

Key Texts(std::vector<std::string>& out) {
  return {"a list of texts", [&out](const toml::node& node) {
            const toml::array* array = node.as_array();
            if (array == nullptr) return false;
            out.clear();
            for (const toml::node& element : *array) {
              auto value = element.value_exact<std::string>();
              if (!value) return false;
              out.push_back(*value);
            }
            return true;
          }};
}

// worker.coordinator: one, or those of all machines that may be it.
Key OneOrMore(std::vector<std::string>& out) {
  return {"a text or a list of texts", [&out](const toml::node& node) {
            if (auto value = node.value_exact<std::string>()) return out = {*value}, true;
            return Texts(out).set(node);
          }};
}

std::string Place(const std::string& source, const toml::node& node) {
  return absl::StrCat(source, ":", node.source().begin.line, ": ");
}

absl::Status ReadTable(const std::string& source, const std::string& section, const toml::node& node, const Keys& keys) {
  const toml::table* table = node.as_table();
  if (table == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(Place(source, node), "'", section, "' must be a section [", section, "]"));
  }
  for (const auto& [name, value] : *table) {
    const std::string key(name.str());
    auto it = keys.find(key);
    if (it == keys.end()) {
      std::vector<std::string> known;
      for (const auto& [each, unused] : keys) known.push_back(each);
      const std::string nearest = NearestWord(key, known);
      return absl::InvalidArgumentError(
          absl::StrCat(Place(source, value), "unknown key '", key, "' in [", section, "]",
                       nearest.empty() ? "; known: " + absl::StrJoin(known, ", ") : "; did you mean '" + nearest + "'?"));
    }
    if (!it->second.set(value)) {
      return absl::InvalidArgumentError(absl::StrCat(Place(source, value), section, ".", key, " must be ", it->second.expected));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadDevices(const std::string& source, const toml::node& node, std::vector<DeviceConfig>& devices) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return absl::InvalidArgumentError(absl::StrCat(Place(source, node), "devices are listed as [[device]]"));
  for (const toml::node& element : *array) {
    DeviceConfig device;
    std::string kind(RowOf(device.kind).name);
    MOTLEY_RETURN_IF_ERROR(ReadTable(source, "device", element,
                                     {{"name", Text(device.name)},
                                      {"kind", Text(kind)},
                                      {"model", Text(device.model)},
                                      {"memory_bytes", Bytes(device.memory_bytes)},
                                      {"flops_per_second", Number(device.flops_per_second)},
                                      {"link_bytes_per_second", Number(device.link_bytes_per_second)},
                                      {"host_link_bytes_per_second", Number(device.host_link_bytes_per_second)},
                                      {"host_root", Index(device.host_root)},
                                      {"index", Index(device.index)},
                                      {"uuid", Text(device.uuid)}}));
    const absl::StatusOr<DeviceKind> parsed = ParseDeviceKind(kind);
    if (!parsed.ok())
      return absl::InvalidArgumentError(absl::StrCat(Place(source, element), "device.", parsed.status().message()));
    device.kind = *parsed;
    if (device.name.empty()) device.name = absl::StrCat(RowOf(device.kind).name_prefix, devices.size());
    devices.push_back(std::move(device));
  }
  return absl::OkStatus();
}

absl::Status CheckWhichCard(const DeviceConfig& device) {
  const bool chooses = device.index.has_value() || !device.uuid.empty();
  const auto wrong = [&](const char* text) {
    return absl::InvalidArgumentError(absl::StrCat("device ", device.name, ": ", text));
  };
  if (device.kind != DeviceKind::kCuda)
    return chooses ? wrong("index and uuid choose a card of kind = \"cuda\"") : absl::OkStatus();
  if (!chooses) {
    return wrong(
        "kind = \"cuda\" needs index = 0, say, or uuid = \"GPU-...\" to choose a card; without any [[device]] all are taken");
  }
  if (device.index && !device.uuid.empty()) return wrong("index and uuid both choose a card; give one of them");
  return absl::OkStatus();
}

absl::Status CheckPositive(const std::string& key, double value, double lowest, double highest) {
  if (std::isfinite(value) && value >= lowest && value <= highest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(key, " must be from ", lowest, " to ", highest, ", got ", value));
}

absl::Status CheckHostLink(const DeviceConfig& device) {
  if (device.host_link_bytes_per_second == 0 && !device.host_root) return absl::OkStatus();
  const std::string where = absl::StrCat("device ", device.name, ": ");
  if (device.kind == DeviceKind::kCpu) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, "host_link_bytes_per_second and host_root are of emulated devices and cards; a CPU's memory is the host's"));
  }
  if (device.host_link_bytes_per_second != 0)
    MOTLEY_RETURN_IF_ERROR(
        CheckPositive(where + "host_link_bytes_per_second", device.host_link_bytes_per_second, kLeastRate, kMostDeviceLinkRate));
  return CheckPositive(where + "host_root", static_cast<double>(device.host_root.value_or(0)), 0, kMostHostRoot);
}

// A path behind it: a Unix socket.
constexpr char kUnixScheme[] = "unix:";

bool IsUnixSocket(const std::string& address) { return address.starts_with(kUnixScheme); }

// Traffic is not encrypted: it may leave the machine only where somebody said so.
absl::Status CheckReach(const WorkerConfig& config, const std::string& key, const std::string& host) {
  if (config.insecure || IsLoopback(host)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " = ", Quoted(host),
                   " is not a loopback address, and this traffic is not encrypted: who is on the way reads it; set "
                   "worker.insecure = true if the network is trusted"));
}

absl::Status CheckCoordinators(const WorkerConfig& config) {
  const std::vector<std::string>& all = config.coordinators;
  if (all.empty() || all.size() > kMostCoordinators) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker.coordinator must name from 1 to ", kMostCoordinators, " addresses, it names ", all.size()));
  }
  const std::set<std::string> different(all.begin(), all.end());
  if (different.size() < all.size()) return absl::InvalidArgumentError("worker.coordinator names an address twice");
  for (const std::string& address : all) {
    if (!IsUnixSocket(address)) {
      MOTLEY_RETURN_IF_ERROR(ParseHostPort("worker.coordinator", address, 1).status());
    } else if (address.size() == std::string_view(kUnixScheme).size()) {
      return absl::InvalidArgumentError("worker.coordinator = 'unix:' names no path; say unix:/run/motley/workers.sock");
    } else if (!config.identity.empty()) {
      return absl::InvalidArgumentError(
          "worker.identity is of a worker that comes by TLS, and worker.coordinator is a Unix socket, where none is spoken; "
          "leave "
          "one out");
    }
  }
  if (all.size() > 1 && std::any_of(all.begin(), all.end(), IsUnixSocket)) {
    return absl::InvalidArgumentError("worker.coordinator names a Unix socket among others; it is this machine's own, alone");
  }
  // What nobody proves may be said by the old one, too: two coordinators would each have a part of the nodes.
  if (all.size() == 1 || UsesTls(config)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "worker.coordinator names several addresses, and this worker does not come by TLS: only a certificate tells the cluster's "
      "coordinator from one that it has replaced. Join by a token (docs/use/joining.md), or name one address");
}

absl::Status CheckAddresses(const WorkerConfig& config) {
  MOTLEY_RETURN_IF_ERROR(CheckCoordinators(config));
  if (!config.metrics.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(const HostPort metrics, ParseHostPort("worker.metrics", config.metrics, 0));
    MOTLEY_RETURN_IF_ERROR(CheckReach(config, "worker.metrics", metrics.host));
  }
  MOTLEY_RETURN_IF_ERROR(CheckHostAddress("worker.data_address", config.data_address));
  return CheckReach(config, "worker.data_address", config.data_address);
}

// The worker's user may have another home than whoever wrote the file.
absl::Status CheckWrittenPaths(const WorkerConfig& config) {
  std::vector<std::pair<std::string, std::string>> paths = {
      {"worker.identity", config.identity}, {"worker.rank_binary", config.rank_binary}, {"files.local", config.files_local}};
  for (const std::string& root : config.file_roots) paths.emplace_back("files.roots", root);
  for (const std::string& address : config.coordinators) {
    if (IsUnixSocket(address)) paths.emplace_back("worker.coordinator", address.substr(sizeof(kUnixScheme) - 1));
  }
  for (const auto& [key, path] : paths) {
    if (path.starts_with('/')) continue;  // it may be called so
    const std::string why = WhyNoPath(path, Patterns::kTake);
    if (!why.empty()) return absl::InvalidArgumentError(absl::StrCat(key, ": ", Quoted(path), " ", why));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WorkerConfig> ParseWorkerConfig(std::string_view text, const std::string& source) {
  toml::table parsed;
  try {
    parsed = toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ":", error.source().begin.line, ": ", std::string(error.description())));
  }
  WorkerConfig config;
  const Keys worker = {{"name", Text(config.name)},
                       {"coordinator", OneOrMore(config.coordinators)},
                       {"data_address", Text(config.data_address)},
                       {"data_authentication", Authentication(config.data_authentication)},
                       {"identity", Text(config.identity)},
                       {"metrics", Text(config.metrics)},
                       {"rank_binary", Text(config.rank_binary)},
                       {"insecure", Flag(config.insecure)},
                       {"stop_seconds", Number(config.stop_seconds)},
                       {"host_memory_bytes", MaybeBytes(config.host_memory_bytes)},
                       {"cores", Whole("a whole number", config.cores)}};
  const Keys emulation = {{"time_dilation", Number(config.emulation.time_dilation)},
                          {"memory_scale", Number(config.emulation.memory_scale)},
                          {"true_memory", Number(config.emulation.true_memory)},
                          {"true_host_memory", Number(config.emulation.true_host_memory)},
                          {"precision", Text(config.emulation.precision)},
                          {"launch_seconds", Number(config.emulation.launch_seconds)},
                          {"link_latency_seconds", Number(config.emulation.link_latency_seconds)}};
  const Keys files = {{"roots", Texts(config.file_roots)}, {"local", Text(config.files_local)}};
  const Keys network = {{"node_link_bytes_per_second", Number(config.network.node_link_bytes_per_second)}};
  for (const auto& [name, node] : parsed) {
    const std::string section(name.str());
    if (section == "worker") {
      MOTLEY_RETURN_IF_ERROR(ReadTable(source, section, node, worker));
    } else if (section == "emulation") {
      MOTLEY_RETURN_IF_ERROR(ReadTable(source, section, node, emulation));
    } else if (section == "files") {
      MOTLEY_RETURN_IF_ERROR(ReadTable(source, section, node, files));
    } else if (section == "network") {
      MOTLEY_RETURN_IF_ERROR(ReadTable(source, section, node, network));
    } else if (section == "device") {
      MOTLEY_RETURN_IF_ERROR(ReadDevices(source, node, config.devices));
    } else {
      const std::string nearest = NearestWord(section, {"worker", "files", "emulation", "network", "device"});
      return absl::InvalidArgumentError(absl::StrCat(
          Place(source, node), "unknown section or key '", section, "'",
          nearest.empty() ? "; known sections: worker, files, emulation, network, device" : "; did you mean '" + nearest + "'?"));
    }
  }
  return config;
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

bool UsesTls(const WorkerConfig& config) {
  if (!config.identity.empty()) return true;
  return std::any_of(config.coordinators.begin(), config.coordinators.end(), [](const std::string& address) {
    if (IsUnixSocket(address)) return false;
    const absl::StatusOr<HostPort> parsed = ParseHostPort("worker.coordinator", address, 1);
    return parsed.ok() && !IsLoopback(parsed->host);
  });
}

std::string SocketInstead(const WorkerConfig& config) {
  if (UsesTls(config) || config.coordinators.empty() || IsUnixSocket(config.coordinators[0])) return "";
  return "a coordinator of this machine whose jobs have owners (server.owners) takes workers by its socket: "
         "worker.coordinator = \"unix:/run/motley/workers.sock\"";
}

std::string IdentityFolderOf(const WorkerConfig& config) {
  return config.identity.empty() ? "/var/lib/motley/worker" : config.identity;
}

std::string FilesFolderOf(const WorkerConfig& config) {
  return config.files_local.empty() ? absl::StrCat(IdentityFolderOf(config), "/files") : config.files_local;
}

absl::StatusOr<WorkerConfig> LoadWorkerConfig(const std::string& path) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kLargestConfigBytes));
  return ParseWorkerConfig(text, path);
}

absl::Status CheckOwnAddress(std::string_view key, const std::string& address) {
  if (IsOfThisMachine(address)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(std::string(key), " = ", Quoted(address),
                                                    " is not an address of this machine; `ip -brief address` lists them"));
}

absl::Status Validate(const WorkerConfig& config) {
  MOTLEY_RETURN_IF_ERROR(CheckName("worker.name", config.name));
  MOTLEY_RETURN_IF_ERROR(CheckWrittenPaths(config));
  MOTLEY_RETURN_IF_ERROR(CheckAddresses(config));
  MOTLEY_RETURN_IF_ERROR(FileRoots::Validate(config.file_roots));
  if (!config.files_local.empty() && !config.files_local.starts_with('/'))
    return absl::InvalidArgumentError(absl::StrCat("files.local must be an absolute path, got ", Quoted(config.files_local)));
  MOTLEY_RETURN_IF_ERROR(CheckPositive("worker.stop_seconds", config.stop_seconds, 0, 86'400));
  MOTLEY_RETURN_IF_ERROR(CheckPositive("worker.cores", static_cast<double>(config.cores), 0, 1024));
  MOTLEY_RETURN_IF_ERROR(
      CheckPositive("worker.host_memory_bytes", static_cast<double>(config.host_memory_bytes.value_or(0)), 0, kMostHostBytes));
  const EmulationConfig& e = config.emulation;
  MOTLEY_RETURN_IF_ERROR(CheckPositive("emulation.time_dilation", e.time_dilation, 1e-3, 1e9));
  MOTLEY_RETURN_IF_ERROR(CheckPositive("emulation.memory_scale", e.memory_scale, 1e-9, 1));
  MOTLEY_RETURN_IF_ERROR(CheckTrueMemory(config));
  MOTLEY_RETURN_IF_ERROR(CheckPositive("emulation.launch_seconds", e.launch_seconds, 0, kMostLatencySeconds));
  MOTLEY_RETURN_IF_ERROR(CheckPositive("emulation.link_latency_seconds", e.link_latency_seconds, 0, kMostLatencySeconds));
  MOTLEY_RETURN_IF_ERROR(CheckPositive("network.node_link_bytes_per_second", config.network.node_link_bytes_per_second, 0, 1e15));
  std::set<std::string> names;
  for (const DeviceConfig& device : config.devices) {
    MOTLEY_RETURN_IF_ERROR(CheckName("device.name", device.name));
    if (!names.insert(device.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("two devices are named '", device.name, "'"));
    }
    MOTLEY_RETURN_IF_ERROR(CheckWhichCard(device));
    const DeviceKindRow& row = RowOf(device.kind);
    const bool declares = !device.model.empty() || device.flops_per_second != 0 || device.link_bytes_per_second != 0;
    if (declares && !row.speed_is_declared) {
      return absl::InvalidArgumentError(absl::StrCat("device ", device.name, ": a ", row.name,
                                                     " is as fast as it is; use kind = \"emulated\" to declare a speed"));
    }
    MOTLEY_RETURN_IF_ERROR(CheckHostLink(device));
  }
  return DescribeDevices(config).status();
}

}  // namespace motley::worker
