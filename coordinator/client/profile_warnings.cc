#include "coordinator/client/profile_warnings.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/costs/latency_match.h"

namespace motley::client {
namespace {

std::vector<std::string> UnusedFiles(const std::vector<std::string>& paths, const planner::Setting& setting) {
  std::vector<std::string> warnings;
  for (const std::string& path : paths) {
    bool used = false;
    for (int kind = 0; kind < setting.costs.num_kinds(); ++kind) {
      used |= absl::StrContains(setting.costs.provenance(kind).source, absl::StrCat(path, ": "));
    }
    if (used) continue;
    std::vector<std::string> cards;
    for (const planner::CardKind& kind : setting.cluster.kinds) cards.push_back(kind.name);
    const planner::Workload& w = setting.workload;
    warnings.push_back(absl::StrCat("no entry of ", path, " was used: it has none that fits model ", w.model_name,
                                    w.profile_name.empty() ? "" : absl::StrCat(" (", w.profile_name, ")"), ", ",
                                    std::string(DTypeName(w.dtype)), ", on ", absl::StrJoin(cards, ", "),
                                    " better than the data sheet or another file"));
  }
  return warnings;
}

// One line for each reason, however many entries have it. Another entry or the data sheet decides in their place.
std::vector<std::string> LostEntries(const planner::Setting& setting, const planner::LatencyBook& book) {
  struct Lost {
    std::string first;
    int count = 0;
  };
  std::map<std::string, Lost> by_reason;
  for (const planner::LatencyEntry& entry : book.entries()) {
    const std::string why = planner::LikelyMistake(entry, setting.cluster.kinds, setting.workload);
    if (why.empty()) continue;
    Lost& lost = by_reason[why];
    if (lost.count++ == 0) lost.first = entry.source;
  }
  std::vector<std::string> warnings;
  for (const auto& [why, lost] : by_reason) {
    warnings.push_back(absl::StrCat(
        lost.first, lost.count > 1 ? absl::StrCat(" and ", lost.count - 1, " more decide") : " decides", " nothing: ", why));
  }
  return warnings;
}

}  // namespace

std::vector<std::string> ProfileWarnings(const std::vector<std::string>& paths, const planner::Setting& setting,
                                         const planner::LatencyBook* book) {
  std::vector<std::string> warnings = UnusedFiles(paths, setting);
  if (paths.empty() || book == nullptr) return warnings;
  const std::vector<std::string> lost = LostEntries(setting, *book);
  warnings.insert(warnings.end(), lost.begin(), lost.end());
  return warnings;
}

}  // namespace motley::client
