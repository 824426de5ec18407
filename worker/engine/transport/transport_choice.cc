#include "worker/engine/transport/transport_choice.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/engine/nccl/nccl_library.h"

namespace motley::engine {
namespace {

// From here on NCCL can have several ranks on one card.
constexpr int kFirstWithSharedCards = 23000;
std::string WhyNotNccl(const std::vector<int>& members, const std::vector<DeviceId>& devices,
                       const std::vector<Introduction>& all) {
  std::map<int, std::vector<std::string>> by_version;
  std::map<std::string, std::vector<std::string>> by_card;
  for (const int r : members) {
    by_version[all[r].nccl_version].push_back(devices[r].value());
    if (!all[r].card.empty()) by_card[all[r].card].push_back(devices[r].value());
  }
  const int newest = by_version.rbegin()->first;
  if (const auto without = by_version.find(0); without != by_version.end()) {
    return newest == 0 ? ""
                       : absl::StrCat(SomeNames(without->second), without->second.size() == 1 ? " has" : " have", " no NCCL");
  }
  if (by_version.size() > 1) {
    std::vector<std::string> parts;
    for (const auto& [version, names] : by_version)
      parts.push_back(absl::StrCat(NcclVersionText(version), " on ", SomeNames(names)));
    return absl::StrCat("NCCL ", absl::StrJoin(parts, ", "), ": ranks of different versions do not understand each other");
  }
  if (newest >= kFirstWithSharedCards) return "";
  for (const auto& [card, names] : by_card) {
    if (names.size() < 2) continue;
    return absl::StrCat(SomeNames(names), " are on one card (", card, "), which NCCL ", NcclVersionText(newest),
                        " cannot serve; ", NcclVersionText(kFirstWithSharedCards), " is the first that can");
  }
  return "";
}

}  // namespace

std::string SomeNames(const std::vector<std::string>& names) {
  constexpr size_t kMost = 4;
  if (names.size() <= kMost) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kMost, ", "), " and ", names.size() - kMost, " more");
}

TransportChoice ChooseTransport(const std::vector<int>& members, const std::vector<DeviceId>& devices,
                                const std::vector<Introduction>& all) {
  if (members.size() < 2) return {};
  TransportChoice choice{Transport::kTcp, WhyNotNccl(members, devices, all)};
  if (choice.why_not_nccl.empty() && all[members[0]].nccl_version > 0) choice.transport = Transport::kNccl;
  return choice;
}

}  // namespace motley::engine
