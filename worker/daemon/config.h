// The worker's configuration: a strict TOML file (docs/use/worker.md) and what it says of the node's devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/session/data_authentication.h"

namespace motley::worker {

struct EmulationConfig {
  double time_dilation = 1;        // compute and links are this many times slower than the card's
  double memory_scale = 1;         // memory is this share of the card's, in (0, 1]
  double true_memory = 1;          // what a rank really gets of the memory that its device declares, in (0, 1]
  double true_host_memory = 1;     // what ranks really get of the host's memory that the node offers, in (0, 1]
  std::string precision = "fp32";  // column of the device table
  // Of what the rank obeys, in real seconds, not dilated: a small model on a slow host would drown in dilated launches.
  double launch_seconds = 0.001;  // every compute instruction
  double link_latency_seconds = 0.0001;
};

struct NetworkConfig {
  double node_link_bytes_per_second = 0;  // the node's NIC before dilation, each direction; 0 = not paced
};

// Numbers are the card's own, before dilation and memory scale; 0 = from the device table (emulated), not limited (cpu), or all
// that is free (cuda).
struct DeviceConfig {
  std::string name;  // "gpu0"; default: kind and ordinal
  DeviceKind kind = DeviceKind::kCpu;
  std::string model;  // emulated: from the device table, unless all three numbers are given
  int64_t memory_bytes = 0;
  double flops_per_second = 0;
  double link_bytes_per_second = 0;
  double host_link_bytes_per_second = 0;  // to the host's memory, each direction; 0 = the card's PCIe
  std::optional<int64_t> host_root;       // devices that give one number share that link; default: each has its own
  std::optional<int64_t> index;           // cuda: which card, as NVML numbers them
  std::string uuid;                       // or its UUID's beginning
};

struct WorkerConfig {
  std::string name;  // default: the host's name
  // Addresses at which the cluster's coordinator may be, for workers; or unix:PATH of its workers.socket, alone.
  std::vector<std::string> coordinators = {"127.0.0.1:7073"};
  std::string identity;                    // folder of this node's key and certificate; see IdentityFolderOf
  std::string data_address = "127.0.0.1";  // numeric address of the interface of the data plane
  std::string metrics = "127.0.0.1:0";     // empty: no listener
  std::string addresses_file;              // --addresses: where to say which addresses were taken; empty = nowhere
  std::string rank_binary;                 // default: motley-rank beside this program; other builds beside it (rank_builds.h)
  bool insecure = false;                   // allow ranks' data and metrics, which are not encrypted, beyond loopback
  std::vector<std::string> file_roots;     // [files] roots: beneath these lies what jobs may read and write; none: nothing
  std::string files_local;                 // [files] local: where this node keeps files of jobs; see FilesFolderOf
  double stop_seconds = 90;                // told to end, it waits so long for its ranks to save; 0 = not at all
  // What ranks together may keep in the host's memory, before memory scale. Not said: of a node with cards a part of what is
  // available (host_memory.h), else none.
  std::optional<int64_t> host_memory_bytes;
  int64_t cores = 0;  // of the host, for this worker's CPU devices; 0 = all that it may run on
  // Of what ranks send each other.
  DataAuthentication data_authentication = DataAuthentication::kBetweenMachines;
  EmulationConfig emulation;
  NetworkConfig network;
  std::vector<DeviceConfig> devices;  // none in the file: every card that can be used, else one cpu (offer.h)
};

// INVALID_ARGUMENT names file, line, key and the nearest known key; NOT_FOUND when there is no such file.
absl::StatusOr<WorkerConfig> LoadWorkerConfig(const std::string& path);
absl::StatusOr<WorkerConfig> ParseWorkerConfig(std::string_view text, const std::string& source);

// What a node is called that names itself nowhere.
std::string HostName();
// Whether the coordinator is dialed by TLS: beyond loopback always, else where an identity is named.
bool UsesTls(const WorkerConfig& config);
// Of a worker that dials its own machine by plain TCP: what to write where the coordinator has no such door. Empty: of others.
std::string SocketInstead(const WorkerConfig& config);
// worker.identity, or /var/lib/motley/worker.
std::string IdentityFolderOf(const WorkerConfig& config);
// files.local, or the folder `files` in the identity's.
std::string FilesFolderOf(const WorkerConfig& config);

// Ranges, addresses, names. INVALID_ARGUMENT names the key.
absl::Status Validate(const WorkerConfig& config);
// FAILED_PRECONDITION, begins with `key`: the address is not one of this machine's now.
absl::Status CheckOwnAddress(std::string_view key, const std::string& address);

// What the ranks obey, after dilation and scale, by the file alone: of a card its name, kind and the memory that it may have.
// NOT_FOUND: a model that is not in the device table, naming the nearest. INVALID_ARGUMENT: a number that no device has
// (device_ranges.h). The node's CPU devices share its cores.
int UsableCores();  // that this process may run on
absl::StatusOr<std::vector<DeviceDescription>> DescribeDevices(const WorkerConfig& config, int cores = UsableCores());

}  // namespace motley::worker
