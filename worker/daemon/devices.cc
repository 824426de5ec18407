// From what the file says of a device to what its rank obeys.
#include <sched.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/device/device_ranges.h"
#include "common/device/device_table.h"
#include "worker/daemon/config.h"

namespace motley::worker {
namespace {

absl::StatusOr<DeviceDescription> DescribeEmulated(const WorkerConfig& config, DeviceConfig device) {
  const bool complete = device.memory_bytes > 0 && device.flops_per_second > 0 && device.link_bytes_per_second > 0;
  if (device.model.empty() && !complete) {
    return absl::InvalidArgumentError(
        absl::StrCat("device ", device.name,
                     ": an emulated device needs a model of the device table, or memory_bytes, flops_per_second and "
                     "link_bytes_per_second"));
  }
  if (!complete) {
    absl::StatusOr<GpuSpec> gpu = FindGpu(device.model);
    if (!gpu.ok()) {
      return absl::Status(gpu.status().code(),
                          absl::StrCat("device ", device.name, ": ", gpu.status().message(),
                                       ". Or give memory_bytes, flops_per_second and link_bytes_per_second."));
    }
    device.model = std::string(gpu->name);
    if (device.memory_bytes == 0) device.memory_bytes = gpu->memory_bytes;
    if (device.link_bytes_per_second == 0) device.link_bytes_per_second = gpu->link_bytes_per_second;
    if (device.flops_per_second == 0) {
      MOTLEY_ASSIGN_OR_RETURN(device.flops_per_second, gpu->Flops(config.emulation.precision));
    }
  }
  // Of a card that the table does not have, the link that it has: its PCIe, for all that is known.
  if (device.host_link_bytes_per_second == 0) {
    const absl::StatusOr<GpuSpec> gpu = FindGpu(device.model);
    device.host_link_bytes_per_second = gpu.ok() ? gpu->pcie_bytes_per_second : device.link_bytes_per_second;
  }
  const EmulationConfig& e = config.emulation;
  DeviceDescription out;
  out.kind = DeviceKind::kEmulated;
  out.model = device.model.empty() ? "custom" : device.model;
  out.memory_bytes = static_cast<int64_t>(static_cast<double>(device.memory_bytes) * e.memory_scale);
  out.flops_per_second = device.flops_per_second / e.time_dilation;
  out.launch = absl::Seconds(e.launch_seconds);
  out.link_bytes_per_second = device.link_bytes_per_second / e.time_dilation;
  out.node_link_bytes_per_second = config.network.node_link_bytes_per_second / e.time_dilation;
  out.link_latency = absl::Seconds(e.link_latency_seconds);
  out.host_link_bytes_per_second = device.host_link_bytes_per_second / e.time_dilation;
  return out;
}

// Of all devices of a kind together all cores: the first ones have one more where the cores do not divide.
int ThreadsOf(int number, int devices, int cores) { return std::max(1, cores / devices + (number < cores % devices ? 1 : 0)); }

// The links to the host get numbers: those that the file gives, then for each device without one the lowest that nobody has.
class HostRoots {
 public:
  explicit HostRoots(const std::vector<DeviceConfig>& devices) {
    for (const DeviceConfig& device : devices) {
      if (device.host_root) given_.insert(static_cast<int>(*device.host_root));
    }
  }
  int Of(const DeviceConfig& device) {
    if (device.host_root) return static_cast<int>(*device.host_root);
    while (given_.contains(next_)) ++next_;
    return next_ > kMostHostRoot ? -1 : next_++;
  }

 private:
  std::set<int> given_;
  int next_ = 0;
};

// What the file offers of the host's memory: scaled as the memory of emulated devices is.
absl::StatusOr<int64_t> HostBytes(const WorkerConfig& config, const std::vector<DeviceConfig>& devices) {
  const int64_t said = config.host_memory_bytes.value_or(0);
  const bool any_emulated =
      std::ranges::any_of(devices, [](const DeviceConfig& device) { return device.kind == DeviceKind::kEmulated; });
  if (said == 0 || !any_emulated) return said;
  const auto bytes = static_cast<int64_t>(static_cast<double>(said) * config.emulation.memory_scale);
  if (static_cast<double>(bytes) >= kLeastDeviceBytes) return bytes;
  return absl::InvalidArgumentError(absl::StrCat("worker.host_memory_bytes is ", bytes,
                                                 " after emulation.memory_scale = ", config.emulation.memory_scale,
                                                 "; it must be at least ", kLeastDeviceBytes, ", or 0: none"));
}

}  // namespace

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

absl::StatusOr<std::vector<DeviceDescription>> DescribeDevices(const WorkerConfig& config, int cores) {
  std::vector<DeviceConfig> devices = config.devices;
  if (devices.empty()) devices.emplace_back().name = "cpu0";
  const auto count = [&](DeviceKind kind) {
    return static_cast<int>(std::ranges::count(devices, kind, [](const DeviceConfig& device) { return device.kind; }));
  };
  const int cpus = count(DeviceKind::kCpu), cards = count(DeviceKind::kCuda);
  if (config.cores > 0) cores = std::min(cores, static_cast<int>(config.cores));
  MOTLEY_ASSIGN_OR_RETURN(const int64_t host_bytes, HostBytes(config, devices));
  HostRoots roots(devices);
  int cpu = 0, card = 0;
  std::vector<DeviceDescription> out;
  for (const DeviceConfig& device : devices) {
    DeviceDescription description;
    switch (device.kind) {  // no default: every kind is described
      case DeviceKind::kEmulated: {
        MOTLEY_ASSIGN_OR_RETURN(description, DescribeEmulated(config, device));
        break;
      }
      case DeviceKind::kCpu:
        description.model = "cpu";
        description.memory_bytes = device.memory_bytes;
        description.threads = ThreadsOf(cpu++, cpus, cores);
        break;
      case DeviceKind::kCuda:  // the rest is found on the machine (offer.h)
        description.memory_bytes = device.memory_bytes;
        description.host_link_bytes_per_second = device.host_link_bytes_per_second;
        description.threads = ThreadsOf(card++, cards, cores);  // for what a start does on the host: initial weights
        break;
    }
    description.kind = device.kind;
    if (device.kind != DeviceKind::kCpu) description.host_root = roots.Of(device);
    description.node_host_memory_bytes = host_bytes;
    description.id = DeviceId(absl::StrCat(config.name, "/", device.name));
    const bool is_found = device.kind == DeviceKind::kCuda && device.memory_bytes == 0;
    if (!is_found) MOTLEY_RETURN_IF_ERROR(CheckRanges(description));
    out.push_back(std::move(description));
  }
  return out;
}

}  // namespace motley::worker
