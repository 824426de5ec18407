#include "worker/daemon/offer.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/status_macros.h"
#include "common/device/device_kinds.h"
#include "common/device/device_table.h"
#include "common/device/transport_choice.h"
#include "worker/daemon/rank_nccl.h"
#include "worker/engine/kernels/open_kernels.h"

namespace motley::worker {
namespace {

constexpr int64_t kLeastBytes = int64_t{1} << 30;
constexpr double kReachedPart = 0.8;  // of a card's PCIe link, by copies from and to pinned memory, until they are measured
constexpr double kLeastShare = 0.1;   // of the card's memory: with less it is somebody's
// Offered memory is a multiple of it, so that a few bytes more or less do not make all profiles another device's.
constexpr int64_t kMemoryGrain = 256 << 20;

int64_t FreeBytes(const NvidiaCard& card) {
  return std::max<int64_t>(0, card.memory_bytes - card.reserved_bytes - card.used_bytes);
}

std::string OthersUse(const NvidiaCard& card) {
  const std::string holders = Holders(card.processes);
  return absl::StrCat("others use ", Gibibytes(card.used_bytes), " of its ", Gibibytes(card.memory_bytes),
                      holders.empty() ? "" : absl::StrCat(": ", holders));
}

std::string BuildPath(const std::string& rank_binary, const RankBuild& build) {
  const std::string newest = RankBinaryName(RankBuilds().front());
  return absl::StrCat(rank_binary, RankBinaryName(build).substr(newest.size()));
}

// Of those that there are: "3 cards (index 0 to 2)".
std::string HowMany(const NvidiaCards& found) {
  if (found.cards.empty()) return "no NVIDIA card";
  return found.cards.size() == 1 ? "1 card (index 0)"
                                 : absl::StrCat(found.cards.size(), " cards (index 0 to ", found.cards.size() - 1, ")");
}

absl::StatusOr<const NvidiaCard*> FindCard(const DeviceConfig& device, const NvidiaCards& found) {
  if (!found.problem.ok()) return absl::UnavailableError(std::string(found.problem.message()));
  std::vector<const NvidiaCard*> matching;
  std::vector<std::string> known;
  for (const NvidiaCard& card : found.cards) {
    const bool matches = device.index ? *device.index == card.index : absl::StartsWithIgnoreCase(card.uuid, device.uuid);
    if (matches) matching.push_back(&card);
    if (!card.uuid.empty()) known.push_back(card.uuid);
  }
  if (matching.size() == 1) return matching[0];
  if (device.index) {
    return absl::FailedPreconditionError(absl::StrCat("index = ", *device.index, ", but this node has ", HowMany(found)));
  }
  const std::string uuids = absl::StrJoin(known, ", ");
  if (matching.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("no card of this node has a UUID that begins with ", Quoted(device.uuid),
                                                      "; there ", known.empty() ? "are none" : "are: " + uuids));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the UUIDs of ", matching.size(), " cards begin with ", Quoted(device.uuid), "; give more of it: ", uuids));
}

// A card that was taken for a device, checked and locked.
struct TakenCard {
  const NvidiaCard* card = nullptr;
  RankBuild build;
};

// As the cluster sees it. The device's id is there already.
absl::Status Complete(const DeviceConfig& device, const NvidiaCard& card, const NvidiaCards& found, DeviceDescription& out) {
  const int64_t free = FreeBytes(card) / kMemoryGrain * kMemoryGrain;
  if (device.memory_bytes > free) {
    return absl::UnavailableError(absl::StrCat("memory_bytes = ", device.memory_bytes, ", but ", Gibibytes(free), " (", free,
                                               ") are free: ", OthersUse(card)));
  }
  const absl::StatusOr<GpuSpec> known = FindGpu(card.model);
  out.model = known.ok() ? std::string(known->name) : card.model;
  out.memory_bytes = device.memory_bytes > 0 ? device.memory_bytes : free;
  CardDescription& facts = out.card;
  facts.uuid = card.uuid;
  facts.bus = card.bus;
  facts.driver = found.driver;
  facts.driver_cuda = found.driver_cuda;
  facts.compute_capability = card.compute_capability;
  facts.pcie_generation = card.pcie_generation;
  facts.pcie_lanes = card.pcie_lanes;
  facts.used_by_others_bytes = card.used_bytes;
  facts.name = card.model;
  facts.nvlink_peers = card.nvlink_peers;
  facts.p2p_peers = card.p2p_peers;
  facts.power_limit_watts = card.power_limit_watts;
  std::vector<std::string> notes;
  if (!known.ok()) {
    const std::string_view nearest = NearestGpuName(card.model);
    notes.push_back(absl::StrCat("not in the device table", nearest.empty() ? "" : "; nearest: ", std::string(nearest)));
  }
  if (card.pcie_lanes > 0 && card.pcie_lanes < card.most_pcie_lanes) {
    notes.push_back(absl::StrCat("linked with ", card.pcie_lanes, " of ", card.most_pcie_lanes, " PCIe lanes"));
  }
  if (const std::string contained = Contained(card.memory_errors); !contained.empty()) {
    notes.push_back(
        absl::StrCat(contained, ": `nvidia-smi -i ", card.bus, " --gpu-reset` remaps the bad rows when no job uses it"));
  }
  facts.note = absl::StrJoin(notes, "; ");
  if (out.host_link_bytes_per_second == 0) {
    const double link = HostLinkBytesPerSecond(facts);
    out.host_link_bytes_per_second = kReachedPart * (link > 0 ? link : known.ok() ? known->pcie_bytes_per_second : 0);
  }
  return absl::OkStatus();
}

// By build: several cards have one.
class NcclByBuild {
 public:
  int Of(const std::string& rank_binary) {
    const auto [at, is_new] = versions_.try_emplace(rank_binary);
    if (is_new) at->second = NcclOf(rank_binary);
    return at->second;
  }

 private:
  std::map<std::string, int> versions_;
};

absl::Status OfferHostMemory(const WorkerConfig& config, const HostMemory& host, Offer& offer) {
  const bool any_card = std::ranges::any_of(
      offer.devices, [](const OfferedDevice& device) { return device.description.kind == DeviceKind::kCuda; });
  for (OfferedDevice& device : offer.devices) {
    int64_t& bytes = device.description.node_host_memory_bytes;
    if (!config.host_memory_bytes && any_card) bytes = OfferedByDefault(host);
    MOTLEY_RETURN_IF_ERROR(CheckHostMemory(bytes, host));
  }
  return absl::OkStatus();
}

absl::StatusOr<TakenCard> Take(const NvidiaCard& card, const NvidiaCards& found, const std::vector<std::string>& builds,
                               Offer& offer) {
  TakenCard taken{&card, {}};
  MOTLEY_ASSIGN_OR_RETURN(taken.build, CheckCard(card, found, builds));
  MOTLEY_ASSIGN_OR_RETURN(CardClaim claim, CardClaim::Take(RunFolder(), card.uuid));
  offer.claims.push_back(std::move(claim));
  return taken;
}

// Every card that can be used becomes a device; the others are said.
void TakeAll(const NvidiaCards& found, const std::vector<std::string>& builds, std::vector<DeviceConfig>& devices,
             std::map<std::string, TakenCard>& taken, Offer& offer) {
  for (const NvidiaCard& card : found.cards) {
    absl::StatusOr<TakenCard> one = found.problem.ok() ? Take(card, found, builds, offer) : found.problem;
    if (!one.ok()) {
      offer.unused.push_back({Name(card), std::string(one.status().message())});
      continue;
    }
    DeviceConfig& device = devices.emplace_back();
    device.kind = DeviceKind::kCuda;
    device.name = absl::StrCat(RowOf(device.kind).name_prefix, card.index);
    taken[device.name] = *std::move(one);
  }
  if (!found.cards.empty()) return;
  const std::string why = found.problem.ok() ? "there is none" : std::string(found.problem.message());
  // The library is there, or cards are: somebody expects them.
  if (found.on_bus > 0 || absl::IsUnavailable(found.problem)) {
    offer.unused.push_back({found.on_bus > 0 ? Count(found.on_bus, "NVIDIA card") : "NVIDIA cards", why});
  } else {
    offer.no_card = why;
  }
}

absl::Status TakeNamed(const std::vector<DeviceConfig>& devices, const NvidiaCards& found, const std::vector<std::string>& builds,
                       std::map<std::string, TakenCard>& taken, Offer& offer) {
  std::map<const NvidiaCard*, std::string> users;
  for (const DeviceConfig& device : devices) {
    if (device.kind != DeviceKind::kCuda) continue;
    const auto with_name = [&device](const absl::Status& status) {
      return absl::Status(status.code(), absl::StrCat("device ", device.name, ": ", status.message()));
    };
    const absl::StatusOr<const NvidiaCard*> card = FindCard(device, found);
    if (!card.ok()) return with_name(card.status());
    if (const auto [user, is_new] = users.emplace(*card, device.name); !is_new) {
      return with_name(
          absl::FailedPreconditionError(absl::StrCat("its card, ", Name(**card), ", is device ", user->second, "'s")));
    }
    absl::StatusOr<TakenCard> one = Take(**card, found, builds, offer);
    if (!one.ok()) {
      return with_name(absl::Status(one.status().code(), absl::StrCat(Name(**card), ": ", one.status().message())));
    }
    taken[device.name] = *std::move(one);
  }
  for (const NvidiaCard& card : found.cards) {
    if (!users.contains(&card)) offer.unused.push_back({Name(card), "no [[device]] of the worker's configuration names it"});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RankBuild> CheckCard(const NvidiaCard& card, const NvidiaCards& found, const std::vector<std::string>& builds) {
  if (!card.error.empty()) return absl::UnavailableError(absl::StrCat(card.error, "; reset it or start the machine again"));
  const std::string smi = absl::StrCat("nvidia-smi -i ", card.bus);
  if (card.mig) {
    return absl::FailedPreconditionError(
        absl::StrCat("it is cut into instances (MIG), which are not supported: `", smi, " -mig 0` makes it one card again"));
  }
  if (card.mode != ComputeMode::kShared) {
    const bool prohibited = card.mode == ComputeMode::kProhibited;
    return absl::FailedPreconditionError(
        absl::StrCat("its compute mode is ",
                     prohibited ? "prohibited: nobody may compute on it"
                                : "exclusive: a rank could not start before the last one's memory is gone",
                     "; `", smi, " -c DEFAULT` lets processes share it"));
  }
  if (const std::string why = WhyUnusable(card.memory_errors); !why.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        why, card.memory_errors.remap_failed
                 ? ": replace the card"
                 : absl::StrCat(": results may be wrong; `", smi, " --gpu-reset` retires the bad rows, or replace the card")));
  }
  const int64_t least = std::max(kLeastBytes, static_cast<int64_t>(kLeastShare * static_cast<double>(card.memory_bytes)));
  if (FreeBytes(card) < least) {
    return absl::UnavailableError(absl::StrCat(OthersUse(card), "; ", Gibibytes(FreeBytes(card)), " are left"));
  }
  return ChooseRankBuild(card.compute_capability, found.driver_cuda, found.driver, builds);
}

std::vector<std::string> PresentBuilds(const std::string& rank_binary) {
  std::vector<std::string> present;
  for (const RankBuild& build : RankBuilds()) {
    if (access(BuildPath(rank_binary, build).c_str(), X_OK) == 0) present.emplace_back(build.libtorch);
  }
  return present;
}

absl::StatusOr<Offer> MakeOffer(const WorkerConfig& config, const NvidiaCards& found, const HostMemory& host) {
  Offer offer;
  WorkerConfig complete = config;
  std::map<std::string, TakenCard> taken;  // by the device's name
  const std::vector<std::string> builds = PresentBuilds(config.rank_binary);
  if (config.devices.empty()) {
    TakeAll(found, builds, complete.devices, taken, offer);
  } else {
    MOTLEY_RETURN_IF_ERROR(TakeNamed(config.devices, found, builds, taken, offer));
  }
  MOTLEY_ASSIGN_OR_RETURN(std::vector<DeviceDescription> descriptions, DescribeDevices(complete));
  NcclByBuild nccl;
  for (size_t i = 0; i < descriptions.size(); ++i) {
    OfferedDevice device{std::move(descriptions[i]), config.rank_binary, -1};
    device.description.libtorch = RankBuilds().front().libtorch;
    if (device.description.kind == DeviceKind::kEmulated) {
      device.true_memory = config.emulation.true_memory;
      device.true_host_memory = config.emulation.true_host_memory;
    }
    if (device.description.kind == DeviceKind::kCuda) {
      const TakenCard& card = taken.at(complete.devices[i].name);
      const absl::Status status = Complete(complete.devices[i], *card.card, found, device.description);
      if (!status.ok())
        return absl::Status(status.code(), absl::StrCat("device ", complete.devices[i].name, ": ", status.message()));
      device.rank_binary = BuildPath(config.rank_binary, card.build);
      device.card_index = card.card->index;
      device.description.libtorch = card.build.libtorch;
      device.description.card.nccl_version = nccl.Of(device.rank_binary);
      const engine::SeenKernels kernels = engine::SeeKernels(device.rank_binary, card.card->compute_capability);
      device.description.card.kernels = kernels.digest;
      device.description.card.why_no_kernels = kernels.why_not;
    }
    offer.devices.push_back(std::move(device));
  }
  MOTLEY_RETURN_IF_ERROR(OfferHostMemory(config, host, offer));
  return offer;
}

std::vector<std::string> Describe(const Offer& offer) {
  std::vector<std::string> lines;
  for (const OfferedDevice& device : offer.devices) {
    const DeviceDescription& d = device.description;
    lines.push_back(absl::StrCat("offers ", d.id.value(), ": ", d.model, ", ", RowOf(d.kind).name));
    if (d.memory_bytes > 0) absl::StrAppend(&lines.back(), ", ", Gibibytes(d.memory_bytes));
    if (d.kind != DeviceKind::kCuda) continue;
    absl::StrAppend(&lines.back(), ", ", d.card.name, " at ", d.card.bus, ", ", d.card.uuid, ", driver ", d.card.driver, ", by ",
                    device.rank_binary.substr(device.rank_binary.rfind('/') + 1),
                    d.card.nccl_version == 0 ? " without NCCL (`motley-rank --nccl` says why)"
                                             : absl::StrCat(" with NCCL ", NcclVersionText(d.card.nccl_version)));
    absl::StrAppend(&lines.back(), d.card.kernels.empty() ? "; PyTorch's kernels alone: " : ", kernels ",
                    d.card.kernels.empty() ? d.card.why_no_kernels : d.card.kernels);
    if (!d.card.note.empty()) absl::StrAppend(&lines.back(), "; ", d.card.note);
  }
  const int64_t host = offer.devices.empty() ? 0 : offer.devices[0].description.node_host_memory_bytes;
  if (host > 0) lines.push_back(absl::StrCat("offers ", Gibibytes(host), " of the host's memory to plans that offload"));
  if (!offer.no_card.empty()) lines.push_back(absl::StrCat("no NVIDIA card is offered: ", offer.no_card));
  for (const UnusedCard& card : offer.unused) lines.push_back(absl::StrCat("does not use ", card.card, ": ", card.reason));
  return lines;
}

}  // namespace motley::worker
