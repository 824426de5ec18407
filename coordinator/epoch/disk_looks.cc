#include "coordinator/epoch/disk_looks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/holdings_round.h"

namespace motley::coordinator {
namespace {

// A disk that is slow deletes for long.
constexpr absl::Duration kTellAgain = absl::Minutes(10);

void Wake(Core& core) {
  if (!core.disk_looks.empty()) core.journal.WakeExaminers();
}

void TellUnwanted(Core& core, const NodeName& name, UnwantedOnNode& unwanted) {
  const auto node = core.state.nodes.find(name);
  if (node == core.state.nodes.end() || !node->second.connected) return;
  const absl::Duration now = core.clock.Now();
  const bool told = unwanted.told && unwanted.up_since == node->second.up_since && now - *unwanted.told < kTellAgain;
  if (told || node->second.description.protocol < kFirstProtocolThatLists) return;
  unwanted.told = now;
  unwanted.up_since = node->second.up_since;
  std::vector<UnwantedFiles> all(unwanted.files.begin(), unwanted.files.end());
  for (UnwantedFiles& files : all) {
    const auto has_it = core.state.jobs.find(files.job);
    if (has_it != core.state.jobs.end()) files.kept = has_it->second.uid;
  }
  AskToDelete(core, name, std::move(all));
}

void NoteGone(Core& core, const NodeName& node, const std::vector<UnwantedFiles>& gone) {
  const auto unwanted = core.unwanted.find(node);
  if (gone.empty() || unwanted == core.unwanted.end()) return;
  Batch batch;
  for (UnwantedFiles files : gone) {
    files.kept = JobUid();
    if (unwanted->second.files.contains(files)) batch.gone.push_back({node, files});
  }
  if (batch.gone.empty()) return;
  // Not stored, it is told again.
  if (const absl::Status status = core.journal.Commit(batch); !status.ok()) {
    return LogError(absl::StrCat("not recorded that files of deleted jobs are gone: ", std::string(status.message())));
  }
  for (const UnwantedRow& row : batch.gone) unwanted->second.files.erase(row.files);
  if (unwanted->second.files.empty()) core.unwanted.erase(unwanted);
}

}  // namespace

std::shared_ptr<const int> BeginDiskLook(Core& core, bool list) {
  auto ticket = std::make_shared<const int>(0);
  HoldingsRound round = AskForDisks(core, list);
  const std::string id = round.check_id;
  core.disk_looks[id] = {std::move(round), ticket};
  return ticket;
}

const DiskLook* FindDiskLook(const Core& core, const std::shared_ptr<const int>& ticket) {
  for (const auto& [id, look] : core.disk_looks) {
    if (look.asker.lock() == ticket) return &look;
  }
  return nullptr;
}

bool OnHoldingsForDisks(Core& core, const NodeName& node, const HoldingsReport& report) {
  NoteGone(core, node, report.gone);
  const auto look = core.disk_looks.find(report.check_id);
  if (look == core.disk_looks.end()) return !report.gone.empty();
  TakeHoldings(look->second.round, node, report);
  Wake(core);
  return true;
}

void AddUnwanted(const Core& core, const JobId& job, const JobUid& uid, std::set<NodeName> nodes, Batch& batch) {
  for (const auto& [name, node] : core.state.nodes) {
    if (!node.forgotten) nodes.insert(name);
  }
  for (const auto& [name, member] : core.state.members) nodes.insert(name);
  for (const NodeName& node : nodes) batch.unwanted.push_back({node, {job, uid, JobUid()}});
}

void NoteUnwanted(Core& core, const Batch& batch) {
  for (const UnwantedRow& row : batch.unwanted) {
    core.unwanted[row.node].files.insert(row.files);
    core.unwanted[row.node].told.reset();
  }
  KeepDisks(core);
}

absl::Status ForgetUnwanted(Core& core, const NodeName& node) {
  const auto unwanted = core.unwanted.find(node);
  if (unwanted == core.unwanted.end()) return absl::OkStatus();
  Batch batch;
  for (const UnwantedFiles& files : unwanted->second.files) batch.gone.push_back({node, files});
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  core.unwanted.erase(unwanted);
  return absl::OkStatus();
}

absl::Status LoadUnwanted(Core& core) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<UnwantedRow> rows, core.store.LoadUnwanted());
  for (const UnwantedRow& row : rows) core.unwanted[row.node].files.insert(row.files);
  return absl::OkStatus();
}

void KeepDisks(Core& core) {
  std::erase_if(core.disk_looks, [](const auto& look) { return look.second.asker.expired(); });
  Wake(core);  // who does not answer is not waited for
  if (core.stopping) return;
  for (auto& [name, unwanted] : core.unwanted) TellUnwanted(core, name, unwanted);
}

}  // namespace motley::coordinator
