#include "common/device/transport_choice.h"

#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/some_names.h"

namespace motley {
namespace {

// From here on NCCL can have several ranks on one card.
constexpr int kFirstWithSharedCards = 23000;

std::string WhyNotNccl(const std::vector<TransportMember>& members) {
  std::map<int, std::vector<std::string>> by_version;
  std::map<std::string, std::vector<std::string>> by_card;
  for (const TransportMember& member : members) {
    by_version[member.nccl_version].push_back(member.name);
    if (!member.card.empty()) by_card[member.card].push_back(member.name);
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

std::string_view TransportName(Transport transport) {
  constexpr std::array<std::string_view, 3> kNames = {"none", "tcp", "nccl"};
  return kNames[static_cast<size_t>(transport)];
}

TransportChoice ChooseTransport(const std::vector<TransportMember>& members) {
  if (members.size() < 2) return {};
  TransportChoice choice{Transport::kTcp, WhyNotNccl(members)};
  if (choice.why_not_nccl.empty() && members[0].nccl_version > 0) choice.transport = Transport::kNccl;
  return choice;
}

std::string NcclVersionText(int version) {
  // Up to 2.8 a version had one digit less.
  if (version < 10000) return absl::StrCat(version / 1000, ".", version / 100 % 10, ".", version % 100);
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace motley
