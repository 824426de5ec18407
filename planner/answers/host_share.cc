#include "planner/answers/host_share.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/each_rank.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

constexpr size_t kMostNamed = 6;

double Fullness(const HostShare& share) {
  return static_cast<double>(share.bytes) / static_cast<double>(std::max<int64_t>(1, share.offered_bytes));
}

}  // namespace

std::vector<HostShare> HostSharesOf(const Setting& setting, const Plan& plan) {
  std::vector<HostShare> shares;
  for (const ClusterNode& node : setting.cluster.nodes) shares.push_back({node.name, 0, 0, node.host_memory_bytes});
  ForEachRank(plan, [&](const RankPlan& rank) {
    const int device = setting.FindDevice(rank.device);
    if (device < 0 || rank.predicted.memory.host == 0) return;
    HostShare& share = shares[setting.cluster.devices[device].node];
    ++share.ranks;
    share.bytes += rank.predicted.memory.host;
  });
  std::erase_if(shares, [](const HostShare& share) { return share.bytes == 0; });
  return shares;
}

OffloadKinds OffloadsOf(const Plan& plan) {
  OffloadKinds kinds;
  ForEachRank(plan, [&kinds](const RankPlan& rank) { kinds = kinds.Or(rank.offload); });
  return kinds;
}

std::string ToText(const std::vector<HostShare>& shares) {
  std::vector<HostShare> fullest = shares;
  std::stable_sort(fullest.begin(), fullest.end(),
                   [](const HostShare& a, const HostShare& b) { return Fullness(a) > Fullness(b); });
  const bool some = fullest.size() > kMostNamed;
  const std::vector<HostShare>& shown = some ? fullest : shares;
  std::string text;
  for (size_t i = 0; i < std::min(kMostNamed, shown.size()); ++i) {
    absl::StrAppend(&text, i > 0 ? ", " : "", shown[i].node.value(), " ", BytesText(shown[i].bytes), " of ",
                    BytesText(shown[i].offered_bytes));
  }
  if (some) absl::StrAppend(&text, " and ", shown.size() - kMostNamed, " nodes more");
  return text;
}

}  // namespace motley::planner
