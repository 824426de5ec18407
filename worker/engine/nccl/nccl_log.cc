#include "worker/engine/nccl/nccl_log.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace motley::engine {
namespace {

constexpr int kNoInterface = -1;

// What stands behind `mark`; none: it is not there.
std::optional<std::string> After(const std::string& line, const char* mark) {
  const size_t at = line.find(mark);
  if (at == std::string::npos) return std::nullopt;
  return line.substr(at + std::string_view(mark).size());
}

// The number in front of `mark`: "8 coll channels".
int NumberBefore(const std::string& line, const char* mark) {
  const size_t end = line.find(mark);
  if (end == std::string::npos) return 0;
  size_t begin = end;
  while (begin > 0 && absl::ascii_isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
  int number = 0;
  return absl::SimpleAtoi(line.substr(begin, end - begin), &number) ? number : 0;
}

void AddOnce(std::vector<std::string>& all, const std::string& one) {
  if (!one.empty() && std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

// Plugins that speak verbs call themselves "IBext_v8" and share IB's interfaces.
std::string Family(const std::string& network) { return network.starts_with("IB") ? "IB" : network; }

}  // namespace

std::optional<NcclLinks> NcclLog::LinksOf(const std::string& lines, bool is_pair) {
  Seen seen;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(lines, '\n'))) ReadLine(line, is_pair, seen);
  NcclLinks links{.channels = seen.channels};
  bool by_network = false;
  for (const std::string& way : seen.ways) {
    const std::vector<std::string> parts = absl::StrSplit(way, '/');
    int number = kNoInterface;
    if (parts[0] == "P2P")
      AddOnce(links.kinds, seen.has_nvlink ? "NVLink" : seen.is_one_card ? "one card" : seen.has_paths ? "PCIe" : "P2P");
    if (parts[0] == "SHM") AddOnce(links.kinds, "shared memory");
    if (parts[0] != "NET" || parts.size() < 2) continue;
    if (parts.size() > 2 && !absl::SimpleAtoi(parts[2], &number)) number = kNoInterface;
    AddNetwork(parts[1], number, links);
    by_network = true;
  }
  // Not every member is connected with another node.
  if (seen.has_many_nodes && !by_network) AddNetwork(network_, kNoInterface, links);
  if (links.kinds.empty()) return std::nullopt;
  std::sort(links.kinds.begin(), links.kinds.end());
  std::sort(links.interfaces.begin(), links.interfaces.end());
  return links;
}

void NcclLog::ReadLine(const std::string& line, bool is_pair, Seen& seen) {
  if (const auto list = After(line, "NET/Socket : Using ")) return ReadInterfaces("Socket", *list);
  if (const auto list = After(line, "NET/IB : Using ")) return ReadInterfaces("IB", *list);
  if (const auto name = After(line, "Using network ")) {
    network_ = *name;
  } else if (const auto nodes = After(line, " nNodes ")) {
    seen.has_many_nodes = std::atoi(nodes->c_str()) > 1;
  } else if (line.find("] NCCL INFO Pattern ") != std::string::npos) {
    const std::string type = After(line, ", type ").value_or("");
    seen.has_paths = true;
    seen.has_nvlink |= type.starts_with("NVL") || type.starts_with("NVB");
    seen.is_one_card |= type.starts_with("LOC");
  } else if (line.find(" coll channels, ") != std::string::npos) {
    seen.channels = NumberBefore(line, is_pair ? " p2p channels per peer" : " coll channels");
  } else if (line.find("] NCCL INFO Channel ") != std::string::npos) {
    AddOnce(seen.ways, After(line, " via ").value_or(""));
  }
}

// "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", "[0]eth0:10.0.0.1<0>"
void NcclLog::ReadInterfaces(const std::string& network, const std::string& list) {
  for (const std::string& entry : std::vector<std::string>(absl::StrSplit(list.substr(0, list.find("; OOB")), ' '))) {
    const size_t bracket = entry.find(']'), colon = entry.find(':');
    int number = 0;
    if (!entry.starts_with("[") || bracket == std::string::npos || colon == std::string::npos || colon < bracket ||
        !absl::SimpleAtoi(entry.substr(1, bracket - 1), &number)) {
      continue;
    }
    const std::string link = network == "Socket" ? "sockets" : After(entry, "/").value_or("IB");
    networks_[network][number] = {entry.substr(bracket + 1, colon - bracket - 1), link.starts_with("IB") ? "InfiniBand" : link};
  }
}

void NcclLog::AddNetwork(const std::string& network, int number, NcclLinks& links) const {
  const auto known = networks_.find(Family(network));
  if (known == networks_.end()) return AddOnce(links.kinds, network);
  const std::map<int, Interface>& interfaces = known->second;
  const auto one = interfaces.size() == 1 ? interfaces.begin() : interfaces.find(number);
  // Of several ports NCCL makes one, which is not in the list.
  AddOnce(links.kinds, one == interfaces.end() ? interfaces.begin()->second.kind : one->second.kind);
  if (one != interfaces.end()) AddOnce(links.interfaces, one->second.name);
}

}  // namespace motley::engine
