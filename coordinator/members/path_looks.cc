#include "coordinator/members/path_looks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/epoch/holdings_round.h"

namespace motley::coordinator {
namespace {

// A file system that is slow gives a few blocks.
constexpr absl::Duration kPathPatience = absl::Seconds(30);

constexpr char kPathPrefix[] = "path-";

bool IsHere(const Core& core, const NodeName& name) {
  const auto node = core.state.nodes.find(name);
  return node != core.state.nodes.end() && node->second.connected;
}

}  // namespace

std::shared_ptr<const int> BeginPathLook(Core& core, const std::string& path, const PathSample& sample) {
  auto ticket = std::make_shared<const int>(0);
  const std::string id = absl::StrCat(kPathPrefix, ++core.holdings_rounds_begun, "-", core.journal.UnixMs());
  PathLook& look = core.path_looks[id] = {core.clock.Now(), {}, ticket};
  StorageCheckCommand check;
  check.data_path = path;
  check.check_id = id;
  check.sample = sample;
  for (const auto& [name, node] : core.state.nodes) {
    if (!node.connected || node.description.protocol < kFirstProtocolThatLists) continue;
    look.answers[name];
    core.Send(name, check);
  }
  return ticket;
}

const PathLook* FindPathLook(const Core& core, const std::shared_ptr<const int>& ticket) {
  for (const auto& [id, look] : core.path_looks) {
    if (look.asker.lock() == ticket) return &look;
  }
  return nullptr;
}

bool IsOver(const Core& core, const PathLook& look) {
  return core.clock.Now() - look.since > kPathPatience ||
         std::all_of(look.answers.begin(), look.answers.end(),
                     [&](const auto& answer) { return answer.second || !IsHere(core, answer.first); });
}

bool OnLookedAtPath(Core& core, const NodeName& node, const StorageReport& report) {
  const auto look = core.path_looks.find(report.check_id);
  if (look == core.path_looks.end()) return report.check_id.starts_with(kPathPrefix);
  const auto answer = look->second.answers.find(node);
  if (answer != look->second.answers.end()) answer->second = report;
  core.journal.WakeExaminers();
  return true;
}

void KeepPathLooks(Core& core) {
  std::erase_if(core.path_looks, [](const auto& look) { return look.second.asker.expired(); });
  if (!core.path_looks.empty()) core.journal.WakeExaminers();  // who does not answer is not waited for
}

}  // namespace motley::coordinator
