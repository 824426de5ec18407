#include "worker/daemon/nvml_cards.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"

namespace motley::worker {
namespace {

using nvml::DeviceHandle;
using nvml::Functions;
using nvml::kSuccess;

constexpr int kMostTries = 8;  // while processes come and go
// Compute capabilities of the chips that contain memory errors: A100, H100, B200, B300 and their kin. NVIDIA, "GPU Memory Error
// Management", table 1; other chips remap rows, too, but what else an error harmed is not known.
constexpr std::array<int, 4> kContaining = {80, 90, 100, 103};

// Null: this driver has no such function.
template <typename Function, typename... Arguments>
nvml::Return Call(Function function, Arguments... arguments) {
  return function == nullptr ? nvml::kFunctionNotFound : function(arguments...);
}

template <typename Function, typename... Arguments>
std::string TextOf(Function function, Arguments... arguments) {
  char text[nvml::kTextBytes] = "";
  if (Call(function, arguments..., text, nvml::kTextBytes) != kSuccess) return "";
  text[nvml::kTextBytes - 1] = '\0';
  return Echo(text);
}

template <typename Function>
int64_t NumberOf(Function function, DeviceHandle card, int64_t unknown) {
  unsigned value = 0;
  return Call(function, card, &value) == kSuccess ? static_cast<int64_t>(value) : unknown;
}

// As the kernel names it: NVML writes eight digits of the domain, in capitals.
std::string Bus(const nvml::PciInfo& info) { return absl::StrFormat("%04x:%02x:%02x.0", info.domain, info.bus, info.device); }

void ReadMemory(const Functions& f, DeviceHandle card, NvidiaCard& out) {
  nvml::Memory2 memory = {.version = nvml::kMemory2Version};
  if (Call(f.MemoryInfo2, card, &memory) == kSuccess) {
    out.memory_bytes = static_cast<int64_t>(memory.total);
    out.reserved_bytes = static_cast<int64_t>(memory.reserved);
    out.used_bytes = static_cast<int64_t>(memory.used);
    return;
  }
  // An older driver counts what it keeps for itself as used.
  nvml::Memory old = {};
  if (Call(f.MemoryInfo, card, &old) != kSuccess) return;
  out.memory_bytes = static_cast<int64_t>(old.total);
  out.used_bytes = static_cast<int64_t>(old.used);
}

std::vector<std::string> NvLinkPeers(const Functions& f, DeviceHandle card) {
  std::set<std::string> peers;  // several links may lead to one card
  for (unsigned link = 0; link < nvml::kMostNvLinks; ++link) {
    int active = 0;
    nvml::PciInfo peer = {};
    if (Call(f.NvLinkState, card, link, &active) != kSuccess || active != nvml::kEnabled) continue;
    if (Call(f.NvLinkPeer, card, link, &peer) == kSuccess) peers.insert(Bus(peer));
  }
  return {peers.begin(), peers.end()};
}

ComputeMode ModeOf(int mode) {
  if (mode == nvml::kModeProhibited) return ComputeMode::kProhibited;
  return mode == nvml::kModeExclusiveProcess || mode == nvml::kModeExclusiveThread ? ComputeMode::kExclusive
                                                                                   : ComputeMode::kShared;
}

MemoryErrors ReadMemoryErrors(const Functions& f, DeviceHandle card, int compute_capability) {
  MemoryErrors errors;
  unsigned long long count = 0;
  if (Call(f.EccErrors, card, nvml::kUncorrectedError, nvml::kVolatileCounter, &count) == kSuccess) {
    errors.uncorrected = static_cast<int64_t>(count);
  }
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  errors.remap_failed = Call(f.RemappedRows, card, &corrected, &uncorrected, &pending, &failed) == kSuccess && failed != 0;
  errors.contains = std::find(kContaining.begin(), kContaining.end(), compute_capability) != kContaining.end();
  return errors;
}

// The path's last part; a thread's own name may follow a blank.
std::string ProcessName(const Functions& f, unsigned pid) {
  std::string path = TextOf(f.ProcessName, pid);
  path = path.substr(0, path.find(' '));
  return path.substr(path.rfind('/') + 1);
}

NvidiaCard ReadCard(const NvmlLibrary& nvml, unsigned index) {
  const Functions& f = nvml.api();
  NvidiaCard card;
  card.index = static_cast<int>(index);
  card.bus = absl::StrCat("index ", index);
  card.model = "NVIDIA card";
  DeviceHandle handle = nullptr;
  nvml::PciInfo pci = {};
  nvml::Return code = f.HandleByIndex(index, &handle);
  if (code == kSuccess) code = f.GetPciInfo(handle, &pci);
  if (code == kSuccess) card.bus = Bus(pci);
  if (const std::string model = code == kSuccess ? TextOf(f.Name, handle) : ""; !model.empty()) card.model = model;
  char uuid[nvml::kTextBytes] = "";
  if (code == kSuccess) code = f.Uuid(handle, uuid, sizeof(uuid));
  int major = 0, minor = 0;
  if (code == kSuccess) code = f.ComputeCapability(handle, &major, &minor);
  if (code != kSuccess) {
    card.error = nvml.Words(code);
    return card;
  }
  card.uuid = Echo(uuid);
  card.compute_capability = major * 10 + minor;
  ReadMemory(f, handle, card);
  card.processes = ReadProcesses(nvml, handle).value_or(std::vector<CardProcess>());
  card.pcie_generation = static_cast<int>(NumberOf(f.MaxPcieGeneration, handle, 0));
  card.most_pcie_lanes = static_cast<int>(NumberOf(f.MaxPcieWidth, handle, 0));
  card.pcie_lanes = static_cast<int>(NumberOf(f.PcieWidth, handle, card.most_pcie_lanes));
  card.nvlink_peers = NvLinkPeers(f, handle);
  card.power_limit_watts = static_cast<int>(NumberOf(f.PowerLimit, handle, 0) / 1000);
  card.memory_errors = ReadMemoryErrors(f, handle, card.compute_capability);
  int mode = 0;
  if (Call(f.ComputeMode, handle, &mode) == kSuccess) card.mode = ModeOf(mode);
  unsigned mig = 0, pending = 0;
  card.mig = Call(f.MigMode, handle, &mig, &pending) == kSuccess && mig == nvml::kEnabled;
  return card;
}

// Of every two cards. Behind a switch NVLink's other end is no card: there only this says who reaches whom.
void ReadPeers(const Functions& f, std::vector<NvidiaCard>& cards) {
  const auto reaches = [&f](const NvidiaCard& from, const NvidiaCard& to, int way) {
    DeviceHandle a = nullptr, b = nullptr;
    int status = -1;
    return f.HandleByIndex(static_cast<unsigned>(from.index), &a) == kSuccess &&
           f.HandleByIndex(static_cast<unsigned>(to.index), &b) == kSuccess &&
           Call(f.P2pStatus, a, b, way, &status) == kSuccess && status == nvml::kP2pOk;
  };
  for (NvidiaCard& card : cards) {
    std::set<std::string> nvlink(card.nvlink_peers.begin(), card.nvlink_peers.end()), p2p;
    for (const NvidiaCard& other : cards) {
      if (other.index == card.index || !card.error.empty() || !other.error.empty()) continue;
      if (reaches(card, other, nvml::kP2pNvLink)) nvlink.insert(other.bus);
      if (reaches(card, other, nvml::kP2pRead)) p2p.insert(other.bus);
    }
    card.nvlink_peers.assign(nvlink.begin(), nvlink.end());
    card.p2p_peers.assign(p2p.begin(), p2p.end());
  }
}

}  // namespace

NvidiaCards ReadCards(const NvmlLibrary& nvml) {
  const Functions& f = nvml.api();
  NvidiaCards found;
  found.driver = TextOf(f.DriverVersion);
  if (Call(f.CudaDriverVersion, &found.driver_cuda) != kSuccess) found.driver_cuda = 0;
  unsigned count = 0;
  if (const nvml::Return code = f.DeviceCount(&count); code != kSuccess) {
    found.problem = absl::UnavailableError(absl::StrCat("the driver does not say which cards there are: ", nvml.Words(code)));
    return found;
  }
  for (unsigned index = 0; index < count; ++index) found.cards.push_back(ReadCard(nvml, index));
  ReadPeers(f, found.cards);
  return found;
}

NvidiaCards LookForCards(const absl::StatusOr<std::unique_ptr<NvmlLibrary>>& nvml, const std::string& folder) {
  if (nvml.ok()) return ReadCards(**nvml);
  NvidiaCards found = FindNvidiaCards(folder);
  found.problem = nvml.status();
  if (found.cards.empty()) found.on_bus = CountCardsOnBus(PciFolder());
  return found;
}

absl::StatusOr<std::vector<CardProcess>> ReadProcesses(const NvmlLibrary& nvml, DeviceHandle card) {
  const Functions& f = nvml.api();
  std::map<unsigned, CardProcess> found;  // one that computes and draws is in both lists
  bool known = false;
  for (const auto function : {f.ComputeProcesses, f.GraphicsProcesses}) {
    std::vector<nvml::ProcessInfo> rows(32);
    unsigned count = 0;
    nvml::Return code = nvml::kInsufficientSize;
    for (int i = 0; i < kMostTries && code == nvml::kInsufficientSize; ++i) {
      count = static_cast<unsigned>(rows.size());
      code = Call(function, card, &count, rows.data());
      if (code == nvml::kInsufficientSize) rows.resize(2 * std::max<size_t>(count, rows.size()));
    }
    if (code != kSuccess) continue;
    known = true;
    for (unsigned i = 0; i < count; ++i) {
      const int64_t bytes = rows[i].used_bytes == nvml::kNotAvailable ? -1 : static_cast<int64_t>(rows[i].used_bytes);
      CardProcess& process = found.try_emplace(rows[i].pid, CardProcess{static_cast<int64_t>(rows[i].pid), "", -1}).first->second;
      process.name = ProcessName(f, rows[i].pid);
      process.bytes = std::max(process.bytes, bytes);
    }
  }
  if (!known) return absl::UnavailableError("the driver does not say which processes use the card");
  std::vector<CardProcess> out;
  for (auto& [pid, process] : found) out.push_back(std::move(process));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

CardSample TakeSample(const NvmlLibrary& nvml, DeviceHandle card) {
  const Functions& f = nvml.api();
  CardSample sample;
  NvidiaCard memory;
  nvml::Memory probe = {};
  // Every driver answers this one, so its error is the card's.
  if (const nvml::Return code = f.MemoryInfo(card, &probe); code == nvml::kGpuIsLost || code == nvml::kResetRequired) {
    sample.lost = nvml.Words(code);
    return sample;
  }
  ReadMemory(f, card, memory);
  sample.memory_bytes = memory.memory_bytes;
  sample.reserved_bytes = memory.reserved_bytes;
  sample.used_bytes = memory.used_bytes;
  nvml::Utilization utilization = {};
  if (Call(f.UtilizationRates, card, &utilization) == kSuccess) sample.utilization = utilization.gpu / 100.0;
  unsigned value = 0;
  if (Call(f.Power, card, &value) == kSuccess) sample.watts = value / 1000.0;
  if (Call(f.Temperature, card, nvml::kTemperatureGpu, &value) == kSuccess) sample.temperature_celsius = value;
  if (Call(f.Clock, card, nvml::kClockSm, &value) == kSuccess) sample.clock_mhz = value;
  if (Call(f.ThrottleReasons, card, &sample.slow_downs) != kSuccess) sample.slow_downs = 0;
  int major = 0, minor = 0;
  if (f.ComputeCapability(card, &major, &minor) != kSuccess) major = 0;
  sample.memory_errors = ReadMemoryErrors(f, card, major * 10 + minor);
  return sample;
}

std::string HealthOf(const CardSample& sample) {
  std::vector<const char*> reasons;
  for (const SlowDown& slow : kSlowDowns) {
    if ((sample.slow_downs & slow.bit) != 0 && !slow.healthy) reasons.push_back(slow.words);
  }
  std::vector<std::string> hurts;
  if (!reasons.empty()) hurts.push_back(absl::StrCat("slowed down: ", absl::StrJoin(reasons, ", ")));
  if (std::string contained = Contained(sample.memory_errors); !contained.empty()) hurts.push_back(std::move(contained));
  return absl::StrJoin(hurts, "; ");
}

}  // namespace motley::worker
