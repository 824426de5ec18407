#include "planner/live/live_inputs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/device/device_table.h"
#include "common/device/transport_choice.h"
#include "common/model/operators.h"
#include "common/session/overlap_text.h"
#include "planner/cluster/link_fit.h"
#include "planner/costs/latency_book.h"
#include "planner/costs/roofline.h"
#include "planner/live/half_units.h"
#include "planner/live/job_request.h"
#include "planner/live/measured_cards.h"
#include "planner/live/measured_links.h"
#include "planner/live/measured_series.h"
#include "planner/live/memory_limits.h"
#include "planner/live/overlap_efficiency.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// Of links that nobody declares, until the measured collectives have said how fast they are.
constexpr double kNominalRate = 1e9;
// Of a device that says no link to its host: a CPU's copies, in the memory that it computes in.
constexpr double kCopyRate = 5e9;
// Of an element, at the end of a step; Costs takes the rate that this gives. A card's clips, makes a norm of copies and casts.
constexpr double kAdamWTrafficBytes = 28, kCardsTrafficBytes = 66;
// The least that a driver's context and the kernels of a model can be. A profile that says less of a card did not see them.
constexpr int64_t kLeastCardContextBytes = int64_t{128} << 20;

std::string HopText(double seconds) {
  if (seconds >= 1e-3) return SecondsText(seconds);
  return absl::StrFormat(seconds < 1e-5 ? "%.1f us" : "%.0f us", seconds * 1e6);
}

absl::Status CheckBelongTogether(const PlannerInput& input) {
  if (input.devices.empty()) return absl::InvalidArgumentError("there is no device to plan for; start a worker with devices");
  if (input.devices.size() != input.compute.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.devices.size(), " devices but ", input.compute.size(), " compute profiles; profile every device"));
  }
  for (size_t d = 0; d < input.devices.size(); ++d) {
    const DeviceId& device = input.devices[d].id;
    const ComputeProfile& profile = input.compute[d];
    if (profile.device != device) {
      return absl::InvalidArgumentError(absl::StrCat("the profile in the place of ", device.value(), " is of ",
                                                     profile.device.value(), "; give them in one order"));
    }
    for (const auto& [unit, name] :
         {std::pair(&profile.embedding, "embedding"), std::pair(&profile.layer, "layer"), std::pair(&profile.head, "head")}) {
      MOTLEY_RETURN_IF_ERROR(CheckPoints(*unit, absl::StrCat("profile of ", device.value(), ", ", name)));
    }
  }
  return absl::OkStatus();
}

// Of one layer at its fastest.
double MeasuredFlops(const PlannerInput& input, const MeasuredSeries& layer) {
  double best = 0;
  const int64_t seq_len = input.config.training.seq_len;
  const double flops =
      ForwardFlops(input.model, UnitKind::kLayer, 1, seq_len) + BackwardFlops(input.model, UnitKind::kLayer, 1, seq_len);
  for (size_t i = 0; i < layer.samples.size(); ++i) {
    best = std::max(best, flops * layer.samples[i] / (layer.forward_seconds[i] + layer.backward_seconds[i]));
  }
  return best;
}

absl::StatusOr<MeasuredCard> MeasuredOf(const PlannerInput& input, const DeviceDescription& device, const ComputeProfile& profile,
                                        const std::string& model_name, DType dtype) {
  MeasuredCard card;
  card.model = model_name;
  card.seq_len = input.config.training.seq_len;
  card.dtype = dtype;
  std::optional<MeasuredSeries> layer = SeriesOf(profile.layer);
  if (!layer) {
    return absl::InvalidArgumentError(
        absl::StrCat("profile of ", profile.device.value(), ", layer: a time is missing or 0; profile the device again"));
  }
  card.layer = *std::move(layer);
  card.embedding = SeriesOf(profile.embedding);
  card.head = SeriesOf(profile.head);
  card.optimizer = MeasuredOptimizer{std::max(0.0, profile.optimizer_seconds_per_element), profile.step_overhead_seconds};
  if (device.kind != DeviceKind::kCuda || profile.context_bytes >= kLeastCardContextBytes)
    card.context_bytes = profile.context_bytes;
  card.load = profile.load;
  return card;
}

// Of a card that the table has, in the type of the job's products; 0: not known.
double DataSheetFlops(const DeviceDescription& device, DType dtype) {
  const absl::StatusOr<GpuSpec> gpu = FindGpu(device.model);
  if (device.kind != DeviceKind::kCuda || !gpu.ok()) return 0;
  const double half = dtype == DType::kBFloat16 ? gpu->bf16_flops : dtype == DType::kFloat16 ? gpu->fp16_flops : 0;
  return half > 0 ? half : gpu->fp32_flops;
}

CardKind KindOf(const PlannerInput& input, const DeviceDescription& device, int64_t memory_bytes, const MeasuredCard& card) {
  CardKind kind;
  kind.peak_flops = DataSheetFlops(device, card.dtype);
  kind.peak_known = kind.peak_flops > 0 || device.flops_per_second > 0;
  const double flops = device.flops_per_second > 0 ? device.flops_per_second : MeasuredFlops(input, card.layer);
  kind.fp32_flops = std::clamp(flops, kLeastFlops, kMostFlops);
  kind.memory_bytes = memory_bytes > 0 ? memory_bytes : static_cast<int64_t>(kMostDeviceBytes);
  kind.launches_ahead = device.kind == DeviceKind::kCuda;
  const double step = card.optimizer->seconds_per_element;
  const double traffic = device.kind == DeviceKind::kCuda ? kCardsTrafficBytes : kAdamWTrafficBytes;
  kind.memory_bytes_per_second =
      std::clamp(step > 0 ? traffic / (kMemoryEfficiency * step) : kMostMemoryRate, kLeastRate, kMostMemoryRate);
  return kind;
}

// What NCCL on one of the devices may find, or none: there is no other that it could talk to.
NcclPath PathOf(const std::vector<DeviceDescription>& devices, const DeviceDescription& device) {
  const auto member = [](const DeviceDescription& d) { return TransportMember{d.id.value(), d.card.nccl_version, d.card.uuid}; };
  NcclPath path = NcclPath::kNone;
  if (device.card.nccl_version == 0) return path;
  for (const DeviceDescription& other : devices) {
    if (other.id == device.id || ChooseTransport({member(device), member(other)}).transport != Transport::kNccl) continue;
    const auto reaches = [&](const std::vector<std::string>& peers) {
      return NodeOf(other.id) == NodeOf(device.id) && std::find(peers.begin(), peers.end(), other.card.bus) != peers.end();
    };
    path = std::max(path, reaches(device.card.nvlink_peers) ? NcclPath::kNvlink
                          : reaches(device.card.p2p_peers)  ? NcclPath::kPcie
                                                            : NcclPath::kHost);
  }
  return path;
}

// Nominal rates: what the devices declare. Those that declare nothing count as the fastest of the others.
struct Declared {
  double device_link = 0;  // fastest
  bool all = true;
  std::vector<bool> nodes;  // in their order: whether any of a node's devices declares anything
};
Declared DeclaredLinks(const std::vector<DeviceDescription>& devices) {
  Declared declared;
  NodeName node;
  for (const DeviceDescription& device : devices) {
    if (declared.nodes.empty() || NodeOf(device.id) != node) declared.nodes.push_back(false);
    node = NodeOf(device.id);
    if (device.link_bytes_per_second > 0 || device.node_link_bytes_per_second > 0) declared.nodes.back() = true;
    declared.device_link = std::max(declared.device_link, device.link_bytes_per_second);
    declared.all &= device.link_bytes_per_second > 0;
  }
  return declared;
}

// What the node offers of its host's memory, and the way there. A file has one rate for a node: the slowest device's.
void AddHost(const PlannerInput& input, ClusterNode* node) {
  std::map<int, std::vector<int>> roots;
  for (const int d : node->devices) {
    const DeviceDescription& device = input.devices[d];
    if (device.node_host_memory_bytes == 0) return;
    const double link = device.host_link_bytes_per_second > 0 ? device.host_link_bytes_per_second : kCopyRate;
    const bool first = node->host_link_bytes_per_second == 0;
    node->host_link_bytes_per_second = first ? link : std::min(node->host_link_bytes_per_second, link);
    if (device.host_root >= 0) roots[device.host_root].push_back(d);
  }
  node->host_memory_bytes = input.devices[node->devices.front()].node_host_memory_bytes;
  for (auto& [unused, devices] : roots) {
    if (devices.size() > 1) node->pcie_roots.push_back(std::move(devices));
  }
}

std::string HostNote(const Cluster& cluster) {
  std::vector<std::string> without;
  for (const ClusterNode& node : cluster.nodes) {
    if (node.host_memory_bytes == 0) without.push_back(node.name.value());
  }
  if (without.size() == cluster.nodes.size()) return "no node offers host memory (host_memory_bytes), so nothing is offloaded";
  return without.empty() ? "" : absl::StrCat("host memory is offered by all nodes but ", absl::StrJoin(without, ", "));
}

void AddNodes(const PlannerInput& input, const std::vector<int>& kinds, const Declared& declared, Cluster* cluster) {
  const double otherwise = declared.device_link > 0 ? declared.device_link : kNominalRate;
  for (size_t d = 0; d < input.devices.size(); ++d) {
    const DeviceDescription& device = input.devices[d];
    if (cluster->nodes.empty() || cluster->nodes.back().name != NodeOf(device.id)) {
      ClusterNode& node = cluster->nodes.emplace_back();
      node.name = NodeOf(device.id);
      node.device_link_bytes_per_second = kMostDeviceLinkRate;
      node.nic_bytes_per_second = kMostNicRate;
    }
    ClusterNode& node = cluster->nodes.back();
    // A file has one rate for all links of a node; the ring goes through all of them.
    const double link = device.link_bytes_per_second > 0 ? device.link_bytes_per_second : otherwise;
    node.device_link_bytes_per_second = std::min(node.device_link_bytes_per_second, link);
    node.device_link_latency_seconds = std::max(node.device_link_latency_seconds, absl::ToDoubleSeconds(device.link_latency));
    node.nic_latency_seconds = node.device_link_latency_seconds;
    if (device.node_link_bytes_per_second > 0) {
      node.nic_bytes_per_second = std::min(node.nic_bytes_per_second, device.node_link_bytes_per_second);
    }
    node.devices.push_back(static_cast<int>(d));
    cluster->devices.push_back({device.id, kinds[d], static_cast<int>(cluster->nodes.size()) - 1});
  }
  // Without a network card of its own a node is as fast as all its devices together.
  for (ClusterNode& node : cluster->nodes) {
    AddHost(input, &node);
    node.nic_bytes_per_second =
        std::min(node.nic_bytes_per_second, static_cast<double>(node.devices.size()) * node.device_link_bytes_per_second);
  }
}

// Of the nodes that declare nothing, by node whether they were measured.
absl::StatusOr<std::vector<bool>> ApplyLinks(const PlannerInput& input, const Declared& declared, Cluster* cluster) {
  const CollectiveProfile& measured = input.collectives;
  if (measured.links.empty() || measured.devices.size() != input.devices.size()) {
    return std::vector<bool>(cluster->nodes.size(), false);
  }
  MOTLEY_RETURN_IF_ERROR(Validate(measured, "collective profile"));
  std::vector<bool> set = SetMeasuredLinks(measured, input.devices, declared.nodes, cluster);
  if (std::count(set.begin(), set.end(), true) > 0) {
    cluster->notes.push_back(absl::StrCat("links are as measured: ", MeasuredLinksText(measured, input.devices, *cluster)));
  }
  std::string slower = declared.all ? SlowerThanDeclared(measured, *cluster) : "";
  if (!slower.empty()) cluster->notes.push_back(std::move(slower));
  return set;
}

std::string NotMeasured(const PlannerInput& input) {
  return absl::StrCat("the collectives of these ", input.devices.size(), " devices were not measured");
}

// From `input.measured`: as its devices alone would be described.
absl::StatusOr<Cluster> DescribeMeasured(const PlannerInput& input) {
  PlannerInput known = input;
  known.devices.clear();
  known.compute.clear();
  for (size_t d = 0; d < input.devices.size(); ++d) {
    const std::vector<DeviceId>& measured = input.measured.devices;
    if (std::find(measured.begin(), measured.end(), input.devices[d].id) == measured.end()) continue;
    known.devices.push_back(input.devices[d]);
    known.compute.push_back(input.compute[d]);
  }
  if (known.devices.size() != input.measured.devices.size() || input.measured.points.empty()) return Cluster();
  known.collectives = std::exchange(known.measured, CollectiveProfile());
  MOTLEY_ASSIGN_OR_RETURN(LiveInputs live, DescribeLive(known));
  return std::move(live.cluster);
}

absl::Status PredictLinks(const PlannerInput& input, const Declared& declared, Cluster* cluster) {
  MOTLEY_ASSIGN_OR_RETURN(const Cluster known, DescribeMeasured(input));
  if (known.nodes.empty()) {
    cluster->notes.push_back(
        absl::StrCat(NotMeasured(input), ": links are as declared", declared.all ? "" : ", or taken for 1 GB/s"));
    return absl::OkStatus();
  }
  ClusterNode slowest = known.nodes[0];
  for (const ClusterNode& node : known.nodes) {
    slowest.device_link_bytes_per_second = std::min(slowest.device_link_bytes_per_second, node.device_link_bytes_per_second);
    slowest.nic_bytes_per_second = std::min(slowest.nic_bytes_per_second, node.nic_bytes_per_second);
    slowest.device_link_latency_seconds = std::max(slowest.device_link_latency_seconds, node.device_link_latency_seconds);
    slowest.nic_latency_seconds = std::max(slowest.nic_latency_seconds, node.nic_latency_seconds);
  }
  for (size_t n = 0; n < cluster->nodes.size(); ++n) {
    ClusterNode& node = cluster->nodes[n];
    const auto same =
        std::find_if(known.nodes.begin(), known.nodes.end(), [&](const ClusterNode& each) { return each.name == node.name; });
    const ClusterNode& like = same != known.nodes.end() ? *same : slowest;
    if (same != known.nodes.end() || !declared.nodes[n]) {
      node.device_link_bytes_per_second = like.device_link_bytes_per_second;
      node.nic_bytes_per_second = like.nic_bytes_per_second;
      // What a node alone says of its network are the links inside it.
      if (known.nodes.size() == 1 && !declared.nodes[n])
        node.nic_bytes_per_second = std::min(node.nic_bytes_per_second, kNominalRate);
    }
    node.device_link_latency_seconds = like.device_link_latency_seconds;
    node.nic_latency_seconds = like.nic_latency_seconds;
  }
  cluster->collective_efficiency = known.collective_efficiency;
  cluster->overlap_efficiency = known.overlap_efficiency;
  cluster->notes.push_back(absl::StrCat(NotMeasured(input), ": they are predicted from those of ", known.devices.size()));
  return absl::OkStatus();
}

absl::Status FitToCollectives(const PlannerInput& input, const Declared& declared, const std::vector<bool>& measured,
                              Cluster* cluster) {
  if (input.devices.size() < 2) return absl::OkStatus();
  if (input.collectives.points.empty()) {
    if (input.predicts_links) return PredictLinks(input, declared, cluster);
    if (declared.all) {
      cluster->notes.push_back("these devices were not measured together: links are as declared");
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat("the links between these ", input.devices.size(),
                                                      " devices were neither measured nor declared; a job measures them before "
                                                      "it starts on them: wait until this one does, or submit it again"));
  }
  MOTLEY_RETURN_IF_ERROR(Validate(input.collectives, "collective profile"));
  MOTLEY_ASSIGN_OR_RETURN(const LinkFit fit, FitLinks(*cluster, input.collectives));
  cluster->collectives = input.collectives;
  cluster->collectives.links.clear();  // nodes and pairs say them now
  if (const std::string text = OverlapText(input.collectives.overlap); !text.empty()) {
    cluster->overlap_efficiency = OverlapEfficiency(input.collectives.overlap);
    cluster->notes.push_back(
        absl::StrFormat("%s, as measured: %.3g of a collective hides behind compute", text, cluster->overlap_efficiency));
  }
  // Rates that were declared or measured link by link are kept, and what collectives reach of them is an efficiency. Rates of
  // which neither is known are those that the collectives reach.
  const bool any_measured = std::count(measured.begin(), measured.end(), true) > 0;
  const bool known = declared.device_link > 0 || any_measured;
  const double rate = known ? std::max(1.0, fit.slowdown) : 1;
  cluster->collective_efficiency = std::max(0.001, 1 / rate);
  for (size_t n = 0; n < cluster->nodes.size(); ++n) {
    if (measured[n]) continue;
    ClusterNode& node = cluster->nodes[n];
    if (!known) {
      node.device_link_bytes_per_second = std::clamp(node.device_link_bytes_per_second / fit.slowdown, kLeastRate, kMostNicRate);
      node.nic_bytes_per_second = std::clamp(node.nic_bytes_per_second / fit.slowdown, kLeastRate, kMostNicRate);
    }
    node.device_link_latency_seconds = node.nic_latency_seconds = std::min(fit.latency_seconds, kMostLatencySeconds);
  }
  cluster->notes.push_back(
      absl::StrFormat("collectives of all %d devices are as measured; links fitted to them: %s a hop, %.3g of the %s, "
                      "off by %.1f %% at the largest arrays",
                      input.devices.size(), HopText(fit.latency_seconds), 1 / fit.slowdown,
                      any_measured               ? "measured links"
                      : declared.device_link > 0 ? "declared rates"
                                                 : "nominal 1 GB/s",
                      100 * fit.error));
  return absl::OkStatus();
}

std::string ModelName(const JobConfig& config) {
  if (config.model.config_json.empty()) return absl::StrCat(config.model.name, "-", config.model.flavor);
  return config.model.config.empty() ? "config.json" : config.model.config;
}

}  // namespace

absl::StatusOr<LiveInputs> DescribeLive(const PlannerInput& input) {
  MOTLEY_RETURN_IF_ERROR(CheckBelongTogether(input));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(input.config.training));
  LiveInputs live;
  live.model_name = ModelName(input.config);
  live.profile.source = absl::StrCat("measured by the workers of ", input.cluster_name);
  live.profile.models[live.model_name] = input.model;
  live.cluster.name = input.cluster_name;
  live.cluster.regions = {"default"};
  live.cluster.usable_memory = 1 - input.config.planner.memory_reserve;
  MeasuredCards cards(&live.cluster, &live.profile);
  const std::vector<int64_t> memory = MemoryLimits(input);
  std::vector<int> kinds;
  for (size_t d = 0; d < input.devices.size(); ++d) {
    MOTLEY_ASSIGN_OR_RETURN(MeasuredCard card,
                            MeasuredOf(input, input.devices[d], input.compute[d], live.model_name, precision.compute));
    const CardKind kind = KindOf(input, input.devices[d], memory[d], card);
    kinds.push_back(cards.Add(input.devices[d], kind, std::move(card)));
    NcclPath& path = live.cluster.kinds[kinds.back()].nccl;  // the best of its devices
    path = std::max(path, PathOf(input.devices, input.devices[d]));
  }
  const Declared declared = DeclaredLinks(input.devices);
  AddNodes(input, kinds, declared, &live.cluster);
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<bool> measured, ApplyLinks(input, declared, &live.cluster));
  MOTLEY_RETURN_IF_ERROR(FitToCollectives(input, declared, measured, &live.cluster));
  if (std::string note = MemoryLimitsText(input); !note.empty()) live.cluster.notes.push_back(std::move(note));
  if (std::string note = HostNote(live.cluster); !note.empty()) live.cluster.notes.push_back(std::move(note));
  if (std::string slow = SlowInHalf(input.devices, precision.compute); !slow.empty())
    live.cluster.notes.push_back(std::move(slow));
  MOTLEY_RETURN_IF_ERROR(Validate(live.cluster));
  return live;
}

absl::StatusOr<JobSetting> SettingOf(const PlannerInput& input) {
  JobSetting job;
  MOTLEY_ASSIGN_OR_RETURN(job.inputs, DescribeLive(input));
  MOTLEY_ASSIGN_OR_RETURN(LatencyBook book, LatencyBook::Of(job.inputs.profile, job.inputs.profile.source));
  job.book = std::make_unique<LatencyBook>(std::move(book));
  Workload workload;
  workload.model_name = job.inputs.model_name;
  workload.model = input.model;
  workload.global_batch = input.config.training.global_batch_size;
  workload.seq_len = input.config.training.seq_len;
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(input.config.training));
  workload.dtype = precision.compute;
  MOTLEY_ASSIGN_OR_RETURN(PlanRequest request, RequestOf(input.config.planner));
  request.from_job = true;
  request.steps_in_turn = CheckStepsInTurn(input.config.training, precision).ok();
  Cluster cluster = job.inputs.cluster;
  if (!input.config.planner.pins_required) job.dropped_pins = DropAbsentPins(cluster, &request);
  for (const std::string& pin : job.dropped_pins) cluster.notes.push_back(absl::StrCat("planned without pin ", pin));
  MOTLEY_ASSIGN_OR_RETURN(job.setting,
                          Setting::Create(std::move(cluster), std::move(workload), std::move(request), job.book.get()));
  return job;
}

}  // namespace motley::planner
