// Reads one cluster file: collects every problem before it gives up, so that a user mends it in one go.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/cluster/cluster_table.h"

namespace motley::planner {

// A card with the links that the table gives it.
struct ClusterCard {
  CardKind kind;
  double link = 0, pcie = 0;  // bytes a second
  bool peer_access = true;    // over PCIe, past the host's memory
};

// An entry of a node's `gpus`: so many cards of a kind, or one with a name of its own.
struct NodeCards {
  int kind = 0;
  int64_t count = 1;
  std::string name;  // empty: gpu0, gpu1, ... by place
};

// What [defaults] may say for all nodes and a node for itself.
struct NodeNumbers {
  std::optional<double> nic, card_nic, nic_latency, device_link, device_latency, host_link, host_memory, price;
  std::optional<double> collective_part, hidden_part;
};

class ClusterReader {
 public:
  explicit ClusterReader(std::string source) : problems_{std::move(source), {}} {}
  absl::StatusOr<Cluster> Read(std::string_view text);

 private:
  void ReadRoot(const toml::table& root);
  void ReadCard(const toml::table& toml);
  void ReadNode(const toml::table& toml);
  void SetLinks(const NodeNumbers& own, const std::vector<NodeCards>& cards, ClusterNode* node) const;
  bool ReadGpus(ClusterTable& table, const std::string& node, std::vector<NodeCards>* cards);
  void AddNode(const std::string& name, const ClusterNode& pattern, const std::vector<NodeCards>& cards,
               const std::vector<std::vector<int64_t>>& roots, int line);
  void ReadLink(const toml::table& toml);
  void ReadDeviceLink(const toml::table& toml);
  void ReadRegionLink(const toml::table& toml);
  void ReadMatrix(const toml::table& toml);
  void ReadCollectives(ClusterTable& root);
  void FillMatrix(ClusterTable& table, const Unit& unit, double most, const std::vector<int>& nodes,
                  std::vector<std::vector<double>>* into);
  void SetLink(ClusterTable& table, size_t size, int a, int b, std::vector<std::vector<double>>* rates,
               std::vector<std::vector<double>>* latencies);
  void CheckReachable();
  std::optional<int> CardNamed(const ClusterTable& table, const char* key, const std::string& name);
  std::optional<std::pair<int, int>> TwoOf(ClusterTable& table, const char* key, const std::vector<std::string>& names);
  std::vector<std::string> NodeNames() const;
  int Region(const std::string& name);

  ClusterProblems problems_;
  Cluster cluster_;
  NodeNumbers defaults_;
  bool gives_collectives_ = false, gives_overlap_ = false;  // the file, for all its links
  std::vector<ClusterCard> cards_;                          // beside cluster_.kinds, same order
  std::vector<ClusterCard> own_cards_;                      // [[card]] by name
  std::vector<int> node_lines_;
  std::set<std::string> node_names_;
};

}  // namespace motley::planner
