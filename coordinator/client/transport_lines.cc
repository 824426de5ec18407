#include "coordinator/client/transport_lines.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/count.h"
#include "common/base/some_names.h"

namespace motley::client {
namespace {

// Reasons that get a line of their own; further ones share one.
constexpr size_t kMostReasons = 3;

// "groups 0, 1, 2, 3 and 12 more, hand-overs of 24 pairs".
class Circles {
 public:
  void Add(const TransportUse& use) {
    if (use.nccl_links) {
      interfaces_.insert(use.nccl_links->interfaces.begin(), use.nccl_links->interfaces.end());
      if (use.nccl_links->channels > 0) channels_.insert(use.nccl_links->channels);
    }
    if (use.group) {
      groups_.push_back(absl::StrCat(*use.group));
    } else {
      ++pairs_;
      pair_ = absl::StrJoin(use.devices, " to ", [](std::string* out, const DeviceId& device) { out->append(device.value()); });
    }
  }
  std::string Text() const {
    std::vector<std::string> parts;
    if (!groups_.empty()) parts.push_back(absl::StrCat(groups_.size() == 1 ? "group " : "groups ", SomeNames(groups_)));
    if (pairs_ > 0) parts.push_back(absl::StrCat("hand-overs ", pairs_ == 1 ? "from " + pair_ : "of " + Count(pairs_, "pair")));
    return absl::StrJoin(parts, ", ");
  }

  // " (mlx5_0, mlx5_1), 2 to 8 channels"
  std::string Network() const {
    std::string text;
    if (!interfaces_.empty()) absl::StrAppend(&text, " (", SomeNames({interfaces_.begin(), interfaces_.end()}), ")");
    if (channels_.empty()) return text;
    const int fewest = *channels_.begin(), most = *channels_.rbegin();
    return absl::StrCat(text, ", ", fewest == most ? "" : absl::StrCat(fewest, " to "), Count(most, "channel"));
  }

 private:
  std::set<std::string> interfaces_;
  std::set<int> channels_;
  std::vector<std::string> groups_;
  int pairs_ = 0;
  std::string pair_;  // the last one
};

std::string Name(Transport transport) { return std::string(TransportName(transport)); }

std::string Over(const TransportUse& use) {
  if (!use.nccl_links) return " over unknown links";
  return absl::StrCat(" over ", absl::StrJoin(use.nccl_links->kinds, " and "));
}

}  // namespace

std::vector<std::string> TransportLines(const std::vector<TransportUse>& uses, TransportsAre are) {
  std::map<std::string, std::string> said;  // by reason: what stands for it
  for (const TransportUse& use : uses) said[use.why_not_nccl] = use.why_not_nccl;
  said.erase("");
  size_t number = 0;
  for (auto& [why, text] : said) {
    if (number++ >= kMostReasons) text = absl::StrCat("other reasons, ", said.size() - kMostReasons, ": -o json has them");
  }
  std::map<std::tuple<bool, std::string, std::string>, Circles> rows;  // whether by TCP, over what, and why
  for (const TransportUse& use : uses) {
    if (use.transport == Transport::kNone) continue;
    const std::string why = use.why_not_nccl.empty() ? "" : said.at(use.why_not_nccl);
    const std::string over = are == TransportsAre::kFound && use.transport == Transport::kNccl ? Over(use) : "";
    rows[{use.transport == Transport::kTcp, over, why}].Add(use);
  }
  std::vector<std::string> lines;
  for (const auto& [key, circles] : rows) {
    const auto& [by_tcp, over, why] = key;
    lines.push_back(absl::StrCat(Name(by_tcp ? Transport::kTcp : Transport::kNccl), over, circles.Network()));
    if (rows.size() > 1) absl::StrAppend(&lines.back(), ": ", circles.Text());
    if (!why.empty()) absl::StrAppend(&lines.back(), " (", why, ")");
  }
  return lines;
}

std::string TransportSurprise(const std::vector<TransportUse>& uses) {
  std::map<std::string, Circles> surprises;
  for (const TransportUse& use : uses) {
    if (!use.planned || *use.planned == use.transport) continue;
    surprises[absl::StrCat(Name(use.transport), " instead of ", Name(*use.planned))].Add(use);
  }
  std::vector<std::string> parts;
  for (const auto& [what, circles] : surprises) parts.push_back(absl::StrCat(circles.Text(), ": ", what));
  return parts.empty() ? "" : absl::StrCat("not as planned: ", absl::StrJoin(parts, "; "));
}

}  // namespace motley::client
