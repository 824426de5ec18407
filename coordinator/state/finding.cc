#include "coordinator/state/finding.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/some_names.h"

namespace motley::coordinator {

void AppendSome(std::vector<Finding> some, const std::string& what, std::vector<Finding>* all) {
  const size_t shown = some.size() > kMostFindings + 1 ? kMostFindings : some.size();
  const size_t left = some.size() - shown;
  const FindingState state = some.empty() ? FindingState::kOk : some.back().state;
  for (size_t i = 0; i < shown; ++i) all->push_back(std::move(some[i]));
  if (left > 0) all->push_back({state, what, absl::StrCat("and ", left, " more like these")});
}

std::string SomeNames(const std::vector<NodeName>& nodes) {
  constexpr size_t kMost = 8;
  std::vector<std::string> names;
  for (const NodeName& node : nodes) names.push_back(node.value());
  return motley::SomeNames(names, kMost);
}

}  // namespace motley::coordinator
