#include "coordinator/state/ways.h"

#include <algorithm>

namespace motley::coordinator {

std::vector<NodeName> Following(const std::vector<NodeName>& nodes, const NodeName& node, size_t most) {
  std::vector<NodeName> following;
  const size_t next = std::upper_bound(nodes.begin(), nodes.end(), node) - nodes.begin();
  for (size_t i = 0; i < nodes.size() && following.size() < most; ++i) {
    const NodeName& other = nodes[(next + i) % nodes.size()];
    if (other != node) following.push_back(other);
  }
  return following;
}

std::vector<Round> AllWays(const std::vector<NodeName>& nodes) {
  if (nodes.size() < 2) return {};
  std::vector<NodeName> circle = nodes;
  if (circle.size() % 2 == 1) circle.emplace_back();  // whoever meets it pauses
  const size_t n = circle.size();
  std::vector<Round> rounds;
  for (size_t turn = 0; turn + 1 < n; ++turn) {
    Round there, back;
    for (size_t i = 0; i < n / 2; ++i) {
      const NodeName &a = circle[i], &b = circle[n - 1 - i];
      if (a.empty() || b.empty()) continue;
      there.emplace_back(a, b);
      back.emplace_back(b, a);
    }
    rounds.push_back(std::move(there));
    rounds.push_back(std::move(back));
    // The first stays, the others move on by one.
    std::rotate(circle.begin() + 1, circle.end() - 1, circle.end());
  }
  return rounds;
}

std::vector<Round> RingWays(const std::vector<NodeName>& nodes) {
  const size_t n = nodes.size();
  if (n < 2) return {};
  std::vector<Round> rounds(n % 2 == 0 ? 2 : 3);
  for (size_t i = 0; i < n; ++i) {
    const bool odd_one = n % 2 == 1 && i == n - 1;
    rounds[odd_one ? 2 : i % 2].emplace_back(nodes[i], nodes[(i + 1) % n]);
  }
  return rounds;
}

}  // namespace motley::coordinator
