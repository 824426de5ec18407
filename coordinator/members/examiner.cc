#include "coordinator/members/examiner.h"

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kTaken = absl::Seconds(30);  // the time for whoever asked to take the result
constexpr char kPrefix[] = "doctor-";

std::string RandomWord(int words) {
  std::random_device random;
  std::string text;
  for (int i = 0; i < words; ++i) absl::StrAppend(&text, absl::StrFormat("%08x", random()));
  return text;
}

void SendAll(Core& core, Messages messages) {
  for (auto& [node, command] : messages) core.Send(node, std::move(command));
}

}  // namespace

std::shared_ptr<const int> BeginExamination(Core& core, const ExaminationRequest& request) {
  AdvanceExamination(core);  // one that nobody waits for any more is over
  if (core.examination) return nullptr;
  Examination& e = core.examination.emplace();
  e.request = request;
  e.limits = core.config.driver.examination;
  e.id = absl::StrCat(kPrefix, RandomWord(1));
  e.secret = RandomWord(4);
  e.begun = e.since = core.clock.Now();
  for (const auto& [name, node] : core.state.nodes) {
    if (node.connected) e.nodes[name] = node.description.incarnation;
  }
  auto ticket = std::make_shared<const int>(0);
  core.examiner = ticket;
  AdvanceExamination(core);
  return ticket;
}

void AdvanceExamination(Core& core) {
  if (!core.examination) return;
  Examination& e = *core.examination;
  if (e.stage == ExaminationStage::kDone) {
    if (core.examiner.expired() || core.clock.Now() - e.since > kTaken) EndExamination(core);
    return;
  }
  if (core.examiner.expired()) {
    SendAll(core, Forget(e));
    return EndExamination(core);
  }
  SendAll(core, Advance(core.clock.Now(), core.state, e));
  core.journal.WakeExaminers();
}

const Examination* FindExamination(const Core& core, const std::shared_ptr<const int>& ticket) {
  return core.examination && core.examiner.lock() == ticket ? &*core.examination : nullptr;
}

void EndExamination(Core& core) {
  core.examination.reset();
  core.examiner.reset();
  core.journal.WakeExaminers();
}

bool IsOfExamination(const std::string& check_id) { return absl::StartsWith(check_id, kPrefix); }

void OnExaminedReach(Core& core, const NodeName& node, const ReachReport& report) {
  if (core.examination && FileReach(node, report, *core.examination)) AdvanceExamination(core);
}

void OnExaminedStorage(Core& core, const NodeName& node, const StorageReport& report) {
  if (core.examination && FileStorage(node, report, *core.examination)) AdvanceExamination(core);
}

}  // namespace motley::coordinator
