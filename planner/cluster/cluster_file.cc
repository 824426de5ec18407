#include "planner/cluster/cluster_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/device/device_table.h"
#include "planner/cluster/cluster_reader.h"
#include "planner/cluster/cluster_units.h"

namespace motley::planner {
namespace {

// Round figures of NCCL inside a node and of TCP in a machine room; docs/use/clusters.md.
constexpr double kDeviceLatencySeconds = 5e-6, kNicLatencySeconds = 20e-6;

// A plain `nic_` is the node's, as files always meant it.
constexpr std::initializer_list<Unit> kNicUnits = {{"nic_gbit_per_second", kGigabit},
                                                   {"nic_gb_per_second", kGiga},
                                                   {"node_nic_gbit_per_second", kGigabit},
                                                   {"node_nic_gb_per_second", kGiga}};
constexpr std::initializer_list<Unit> kCardNicUnits = {{"card_nic_gbit_per_second", kGigabit}, {"card_nic_gb_per_second", kGiga}};

// What a link of the data sheet gives a collective, and how much of it hides, of tiers that were compared with steps:
// docs/inside/card-parts.md.
constexpr double kNvlinkPart = 0.7, kHiddenPart = 0.5;
// Boards that do not reach each other write to the host's memory and read from there.
constexpr double kThroughHostPart = 0.25;
constexpr double kLeastPart = 0.001;

// Of one card's NIC; beyond what any has it is likely its node's sum.
std::optional<double> ReadCardNic(ClusterTable& table) {
  const std::optional<double> nic = table.Quantity(kCardNicUnits, kLeastRate, kMostNicRate);
  if (!nic || *nic <= kMostCardNicRate) return nic;
  const char* const key = table.Has(kCardNicUnits.begin()->key) ? kCardNicUnits.begin()->key : kCardNicUnits.begin()[1].key;
  table.Problem(key, absl::StrCat("is ", *nic / kGigabit, " Gbit/s for each card, and no card's NIC has more than ",
                                  kMostCardNicRate / kGigabit, "; is it the node's sum? Then it is node_nic_gbit_per_second"));
  return std::nullopt;
}

NodeNumbers ReadNumbers(ClusterTable& table) {
  NodeNumbers numbers;
  numbers.nic = table.Quantity(kNicUnits, kLeastRate, kMostNicRate);
  numbers.card_nic = ReadCardNic(table);
  if (numbers.nic && numbers.card_nic) {
    table.Problem("nic_gbit_per_second", "the network is given for the node and for each card; leave one of them out");
  }
  numbers.nic_latency = table.Quantity({{"nic_latency_us", kMicro}}, 0, kMostLatencySeconds);
  numbers.device_link = table.Quantity({{"device_link_gb_per_second", kGiga}}, kLeastRate, kMostDeviceLinkRate);
  numbers.device_latency = table.Quantity({{"device_link_latency_us", kMicro}}, 0, kMostLatencySeconds);
  numbers.host_link = table.Quantity({{"host_link_gb_per_second", kGiga}}, kLeastRate, kMostDeviceLinkRate);
  numbers.host_memory = table.Quantity({{"host_memory_gib", kGiB}}, kGiB / 1024, kMostHostBytes);
  numbers.price = table.Quantity({{"usd_per_hour", 1}}, 0, 1e6);
  numbers.collective_part = table.Quantity({{"collective_part", 1}}, kLeastPart, 1);
  numbers.hidden_part = table.Quantity({{"hidden_part", 1}}, 0, 1);
  return numbers;
}

// Names become device ids, words of plans' texts.
bool IsPlainName(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

std::optional<int> ClusterReader::CardNamed(const ClusterTable& table, const char* key, const std::string& name) {
  ClusterCard card;
  const auto own = std::find_if(own_cards_.begin(), own_cards_.end(), [&](const ClusterCard& c) { return c.kind.name == name; });
  if (own != own_cards_.end()) {
    card = *own;
  } else {
    const absl::StatusOr<GpuSpec> gpu = FindGpu(name);
    if (!gpu.ok()) {
      table.Problem(key, absl::StrCat(std::string(gpu.status().message()), ". Or describe it in a [[card]]."));
      return std::nullopt;
    }
    card.kind = KindOfCard(*gpu);
    card.link = gpu->link_bytes_per_second;
    card.pcie = gpu->pcie_bytes_per_second;
    card.peer_access = RowOf(gpu->family).peer_access;
  }
  for (size_t k = 0; k < cards_.size(); ++k) {
    if (cards_[k].kind.name == card.kind.name) return static_cast<int>(k);
  }
  cards_.push_back(card);
  cluster_.kinds.push_back(card.kind);
  return static_cast<int>(cards_.size()) - 1;
}

void ClusterReader::ReadCard(const toml::table& toml) {
  ClusterTable table(toml, "card", &problems_);
  ClusterCard card;
  const std::optional<std::string> name = table.Text("name");
  if (!name) table.Problem("name", "is missing");
  if (const std::optional<std::string> like = table.Text("like")) {
    const absl::StatusOr<GpuSpec> gpu = FindGpu(*like);
    if (!gpu.ok()) return table.Problem("like", std::string(gpu.status().message()));
    card = {KindOfCard(*gpu), gpu->link_bytes_per_second, gpu->pcie_bytes_per_second, RowOf(gpu->family).peer_access};
  }
  card.kind.name = name.value_or("");
  const auto read = [&](const char* key, double factor, double low, double high, double& into) {
    if (const std::optional<double> value = table.Quantity({{key, factor}}, low, high)) into = *value;
    if (into == 0) table.Problem(key, "is missing; give it, or a card to start from: like = \"A6000\"");
  };
  read("fp32_tflops", kTera, kLeastFlops, kMostFlops, card.kind.fp32_flops);
  for (const auto& [key, flops] :
       {std::pair{"tf32_tflops", &card.kind.tf32_flops}, std::pair{"fp16_tflops", &card.kind.fp16_flops},
        std::pair{"bf16_tflops", &card.kind.bf16_flops}}) {
    if (const std::optional<double> value = table.Quantity({{key, kTera}}, kLeastFlops, kMostFlops)) *flops = *value;
  }
  if (const std::optional<double> value = table.Quantity({{"peak_tflops", kTera}}, 0, kMostFlops)) {
    card.kind.peak_flops = *value;
    card.kind.peak_known = *value > 0;
  }
  CardParts& parts = card.kind.parts;
  for (const auto& [key, into, low, high] : {std::tuple("matrix_part", &parts.matrix, kLeastPart, 1.0),
                                             std::tuple("attention_part", &parts.attention, kLeastPart, 1.0),
                                             std::tuple("attention_tokens", &parts.attention_tokens, 0.0, kMostAttentionTokens),
                                             std::tuple("memory_part", &parts.memory, kLeastPart, 1.0),
                                             std::tuple("deviation", &parts.deviation, 0.0, kMostDeviation)}) {
    if (const std::optional<double> value = table.Quantity({{key, 1}}, low, high)) *into = *value;
  }
  double bytes = static_cast<double>(card.kind.memory_bytes);
  read("memory_gib", kGiB, kLeastDeviceBytes, kMostDeviceBytes, bytes);
  card.kind.memory_bytes = static_cast<int64_t>(bytes);
  read("memory_gb_per_second", kGiga, kLeastRate, kMostMemoryRate, card.kind.memory_bytes_per_second);
  // Either link stands for the other: a card without NVLink has PCIe alone.
  const std::optional<double> pcie = table.Quantity({{"pcie_gb_per_second", kGiga}}, kLeastRate, kMostDeviceLinkRate);
  if (card.link == 0) card.link = pcie.value_or(0);
  read("link_gb_per_second", kGiga, kLeastRate, kMostDeviceLinkRate, card.link);
  card.pcie = pcie.value_or(card.pcie > 0 ? card.pcie : card.link);
  if (const std::optional<std::string> path = table.Text("nccl")) {
    const auto known = std::find(kNcclPathNames.begin(), kNcclPathNames.end(), *path);
    if (known == kNcclPathNames.end()) {
      table.Problem("nccl", absl::StrCat("'", *path, "' is none of ", absl::StrJoin(kNcclPathNames, ", ")));
    } else {
      card.kind.nccl = static_cast<NcclPath>(known - kNcclPathNames.begin());
    }
  }
  card.kind.launches_ahead = table.Truth("launches_ahead").value_or(card.kind.launches_ahead);
  table.Finish();
  for (const ClusterCard& other : own_cards_) {
    if (other.kind.name == card.kind.name) table.Problem("name", absl::StrCat("card '", card.kind.name, "' is there twice"));
  }
  own_cards_.push_back(card);
}

// `gpus = ["L4", {card = "A6000", count = 2}, {card = "A6000", name = "cpu0"}]`.
bool ClusterReader::ReadGpus(ClusterTable& table, const std::string& node, std::vector<NodeCards>* cards) {
  const toml::array* gpus = table.Array("gpus");
  if (gpus == nullptr || gpus->empty()) {
    table.Problem("gpus", absl::StrCat("node '", node, "' has no cards; give them as gpus = [{card = \"A6000\", count = 2}]"));
    return false;
  }
  for (const toml::node& entry : *gpus) {
    NodeCards cards_of_entry;
    std::optional<std::string> name = entry.value_exact<std::string>();
    if (const toml::table* toml = entry.as_table()) {
      ClusterTable gpu(*toml, "gpus", &problems_);
      name = gpu.Text("card");
      cards_of_entry.count = gpu.Integer("count", 1, kMostDevices).value_or(1);
      cards_of_entry.name = gpu.Text("name").value_or("");
      if (!IsPlainName(cards_of_entry.name)) {
        gpu.Problem("name", absl::StrCat("'", cards_of_entry.name, "' may have letters, digits, '.', '_' and '-' alone"));
      }
      if (cards_of_entry.count > 1 && !cards_of_entry.name.empty()) {
        gpu.Problem("name", "is of one card; leave count out and give each card an entry of its own");
      }
      gpu.Finish();
    }
    if (!name) {
      table.Problem("gpus", "each entry is a card's name or {card = \"A6000\", count = 2}");
      return false;
    }
    const std::optional<int> kind = CardNamed(table, "gpus", *name);
    if (!kind) return false;
    cards_of_entry.kind = *kind;
    cards->push_back(std::move(cards_of_entry));
  }
  return true;
}

int ClusterReader::Region(const std::string& name) {
  const auto found = std::find(cluster_.regions.begin(), cluster_.regions.end(), name);
  if (found == cluster_.regions.end()) cluster_.regions.push_back(name);
  return static_cast<int>(std::find(cluster_.regions.begin(), cluster_.regions.end(), name) - cluster_.regions.begin());
}

void ClusterReader::ReadNode(const toml::table& toml) {
  ClusterTable table(toml, "node", &problems_);
  const std::string name = table.Text("name").value_or(absl::StrCat("n", cluster_.nodes.size() + 1));
  const std::optional<int64_t> count = table.Integer("count", 1, kMostDevices);
  ClusterNode node;
  node.region = Region(table.Text("region").value_or("default"));
  std::vector<NodeCards> cards;
  const bool good = ReadGpus(table, name, &cards);
  const NodeNumbers own = ReadNumbers(table);
  const std::vector<std::vector<int64_t>> roots = table.IntegerLists("pcie_roots");
  table.Finish();
  if (!IsPlainName(name))
    return table.Problem("name", absl::StrCat("'", name, "' may have letters, digits, '.', '_' and '-' alone"));
  if (!good) return;
  double pcie = kMostDeviceLinkRate;
  int64_t devices = 0;
  for (const NodeCards& entry : cards) {
    pcie = std::min(pcie, cards_[entry.kind].pcie);
    devices += entry.count;
  }
  const auto either = [&](std::optional<double> NodeNumbers::*field, double otherwise) {
    return (own.*field).value_or((defaults_.*field).value_or(otherwise));
  };
  SetLinks(own, cards, &node);
  node.device_link_latency_seconds = either(&NodeNumbers::device_latency, kDeviceLatencySeconds);
  const NodeNumbers& network = own.nic || own.card_nic ? own : defaults_;
  node.nic_bytes_per_second = network.nic.value_or(network.card_nic.value_or(0) * static_cast<double>(devices));
  node.nic_latency_seconds = either(&NodeNumbers::nic_latency, kNicLatencySeconds);
  node.host_link_bytes_per_second = either(&NodeNumbers::host_link, pcie);
  node.host_memory_bytes = static_cast<int64_t>(either(&NodeNumbers::host_memory, 0));
  node.price_per_hour = either(&NodeNumbers::price, 0);
  const int64_t copies = count.value_or(1);
  const int64_t total = static_cast<int64_t>(cluster_.devices.size()) + devices * copies;  // both factors are small
  if (total > kMostDevices) {
    return table.Problem("count", absl::StrCat("makes ", total, " devices; at most ", kMostDevices, " can be planned"));
  }
  const bool dash = name.size() > 1;  // n1, but t4-1
  for (int64_t i = 1; i <= copies; ++i) {
    AddNode(count ? absl::StrCat(name, dash ? "-" : "", i) : name, node, cards, roots, table.line());
  }
}

// The links between a node's devices: as the file has them, else the slowest card's, of which collectives reach a part.
void ClusterReader::SetLinks(const NodeNumbers& own, const std::vector<NodeCards>& cards, ClusterNode* node) const {
  const ClusterCard* slowest = nullptr;
  const auto rate = [](const ClusterCard& card) {
    return card.peer_access || card.link > card.pcie ? card.link : kThroughHostPart * card.link;
  };
  for (const NodeCards& entry : cards) {
    if (slowest == nullptr || rate(cards_[entry.kind]) < rate(*slowest)) slowest = &cards_[entry.kind];
  }
  const std::optional<double> given = own.device_link ? own.device_link : defaults_.device_link;
  const bool nvlink = slowest->link > slowest->pcie && slowest->kind.parts.compared();
  const auto links = [&](double of_card, bool through_host) {
    const double part = nvlink ? kNvlinkPart : 1, hidden = nvlink || through_host ? kHiddenPart : 1;
    return CardLinks{given.value_or(of_card),
                     own.collective_part.value_or(defaults_.collective_part.value_or(given || gives_collectives_ ? 1 : part)),
                     own.hidden_part.value_or(defaults_.hidden_part.value_or(given || gives_overlap_ ? 1 : hidden))};
  };
  const bool through_host = rate(*slowest) < slowest->link;
  const CardLinks joined = links(rate(*slowest), through_host);
  const bool alone = cards.size() == 1 && cards.front().count == 1;  // it reaches the network as its PCIe does
  SetCardLinks(alone ? links(slowest->link, false) : joined, node);
  if (alone && through_host && !given) node->beside_another = joined;
}

void ClusterReader::AddNode(const std::string& name, const ClusterNode& pattern, const std::vector<NodeCards>& cards,
                            const std::vector<std::vector<int64_t>>& roots, int line) {
  if (!node_names_.insert(name).second) {
    return problems_.Add(line, "node.name", absl::StrCat("node '", name, "': two nodes have this name; give each its own"));
  }
  ClusterNode& node = cluster_.nodes.emplace_back(pattern);
  node.name = NodeName(name);
  node_lines_.push_back(line);
  const int first = static_cast<int>(cluster_.devices.size());
  for (const NodeCards& entry : cards) {
    for (int64_t i = 0; i < entry.count; ++i) {
      const int device = static_cast<int>(cluster_.devices.size());
      const std::string own = entry.name.empty() ? absl::StrCat("gpu", device - first) : entry.name;
      node.devices.push_back(device);
      cluster_.devices.push_back(
          {DeviceId(absl::StrCat(name, "/", own)), entry.kind, static_cast<int>(cluster_.nodes.size()) - 1});
    }
  }
  for (const std::vector<int64_t>& root : roots) {
    std::vector<int>& devices = node.pcie_roots.emplace_back();
    for (const int64_t gpu : root) {
      if (gpu < 0 || gpu >= static_cast<int64_t>(node.devices.size())) {
        return problems_.Add(line, "node.pcie_roots",
                             absl::StrCat("node '", name, "' has no gpu", gpu, "; its cards are 0 to ", node.devices.size() - 1));
      }
      devices.push_back(first + static_cast<int>(gpu));
    }
  }
}

void ClusterReader::ReadRoot(const toml::table& root) {
  ClusterTable table(root, "", &problems_);
  cluster_.name = table.Text("name").value_or(problems_.source);
  cluster_.notes = table.Texts("notes");
  cluster_.overlap_efficiency = table.Quantity({{"overlap_efficiency", 1}}, 0, 1).value_or(cluster_.overlap_efficiency);
  cluster_.collective_efficiency =
      table.Quantity({{"collective_efficiency", 1}}, 0.001, 1).value_or(cluster_.collective_efficiency);
  gives_overlap_ = table.Has("overlap_efficiency");
  gives_collectives_ = table.Has("collective_efficiency");
  cluster_.usable_memory = table.Quantity({{"usable_memory", 1}}, 0.01, 1).value_or(cluster_.usable_memory);
  if (const toml::table* toml = table.Table("defaults")) {
    ClusterTable defaults(*toml, "defaults", &problems_);
    defaults_ = ReadNumbers(defaults);
    defaults.Finish();
  }
  // Cards before the nodes that use them, nodes before the links between them, whatever the order in the file.
  for (const toml::table* card : table.Tables("card")) ReadCard(*card);
  for (const toml::table* node : table.Tables("node")) ReadNode(*node);
  for (const toml::table* link : table.Tables("link")) ReadLink(*link);
  for (const toml::table* link : table.Tables("device_link")) ReadDeviceLink(*link);
  if (const toml::table* matrix = table.Table("matrix")) ReadMatrix(*matrix);
  for (const toml::table* link : table.Tables("region_link")) ReadRegionLink(*link);
  ReadCollectives(table);
  table.Finish();
  if (cluster_.nodes.empty() && problems_.lines.empty()) {
    problems_.Add(1, "node", "the file has no node; add [[node]] with gpus = [{card = \"A6000\", count = 2}]");
  }
  if (problems_.lines.empty()) CheckReachable();
}

absl::StatusOr<Cluster> ClusterReader::Read(std::string_view text) {
  if (text.size() > static_cast<size_t>(kLargestClusterFileBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(problems_.source, ": has ", text.size(), " bytes; a cluster file has at most ", kLargestClusterFileBytes));
  }
  try {
    ReadRoot(toml::parse(text, problems_.source));
  } catch (const toml::parse_error& error) {
    problems_.Add(static_cast<int>(error.source().begin.line), "not TOML", std::string(error.description()));
  }
  if (problems_.lines.empty()) {
    if (const absl::Status status = Validate(cluster_); !status.ok())
      problems_.lines.push_back(absl::StrCat(problems_.source, ": ", std::string(status.message())));
  }
  if (!problems_.lines.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems_.lines, "\n"));
  return std::move(cluster_);
}

absl::StatusOr<Cluster> ParseCluster(std::string_view toml, std::string_view source) {
  return ClusterReader(std::string(source)).Read(toml);
}

}  // namespace motley::planner
