#include "coordinator/rpc/check_cluster.h"

#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "coordinator/epoch/disk_looks.h"
#include "coordinator/epoch/holdings_round.h"
#include "coordinator/members/examiner.h"
#include "coordinator/rpc/absolute_path.h"
#include "coordinator/state/examination_findings.h"

namespace motley::coordinator {
namespace {

v1::Finding::State StateOf(FindingState state) {
  switch (state) {
    case FindingState::kOk:
      return v1::Finding::STATE_OK;
    case FindingState::kWarning:
      return v1::Finding::STATE_WARNING;
    case FindingState::kWrong:
      return v1::Finding::STATE_WRONG;
    case FindingState::kLeftOut:
      return v1::Finding::STATE_LEFT_OUT;
  }
  return v1::Finding::STATE_UNSPECIFIED;
}

void AddFindings(const std::vector<Finding>& findings, v1::ClusterCheck& view) {
  for (const Finding& finding : findings) {
    v1::Finding* row = view.add_findings();
    row->set_state(StateOf(finding.state));
    row->set_what(finding.what);
    row->set_text(finding.text);
  }
}

v1::ClusterCheck ViewOf(const Core& core, const Examination& examination) {
  v1::ClusterCheck view;
  view.set_version(kVersion);
  view.set_protocol(kProtocol);
  AddFindings(Judge(core.clock.Now(), core.state, examination), view);
  for (const auto& [way, answer] : examination.ways) {
    if (!answer.answered) continue;
    v1::Link* link = view.add_links();
    link->set_from(way.first.value());
    link->set_to(way.second.value());
    link->set_error(answer.error);
    link->set_connect_seconds(answer.connect_seconds);
    link->set_bytes_per_second(answer.bytes_per_second);
  }
  view.set_seconds(absl::ToDoubleSeconds(core.clock.Now() - examination.begun));
  return view;
}

}  // namespace

absl::Status CheckClusterSource::Begin(Core& core) {
  MOTLEY_RETURN_IF_ERROR(CheckAbsolutePath("data_path", request_.data_path()));
  MOTLEY_RETURN_IF_ERROR(CheckAbsolutePath("checkpoint_folder", request_.checkpoint_folder()));
  MOTLEY_RETURN_IF_ERROR(CheckAbsolutePath("validation_path", request_.validation_path()));
  MOTLEY_RETURN_IF_ERROR(CheckAbsolutePath("initial", request_.initial()));
  ticket_ = BeginExamination(core, {request_.data_path(), request_.checkpoint_folder(), request_.rates_beside_job(),
                                    request_.validation_path(), request_.initial()});
  // Jobs that name a folder have no part in these.
  if (disks_ == nullptr && request_.checkpoint_folder().empty()) disks_ = BeginDiskLook(core, /*list=*/false);
  return absl::OkStatus();
}

absl::StatusOr<std::string> CheckClusterSource::Advance(Core& core) {
  if (ticket_ == nullptr) return "waiting until another examination has ended";
  const Examination* found = FindExamination(core, ticket_);
  if (found == nullptr) return absl::DeadlineExceededError("the result of the examination was not taken in time; ask again");
  if (found->stage != ExaminationStage::kDone) return Doing(core.clock.Now(), *found);
  checked_ = ViewOf(core, *found);
  ticket_.reset();
  EndExamination(core);
  return "waiting for the nodes' disks";
}

absl::StatusOr<Pull> CheckClusterSource::Next(Core& core, v1::CheckClusterUpdate* out) {
  if (done_) return Pull::kEnd;
  if (ticket_ == nullptr && !checked_) MOTLEY_RETURN_IF_ERROR(Begin(core));
  std::string doing = said_;
  if (!checked_) {
    MOTLEY_ASSIGN_OR_RETURN(doing, Advance(core));
  }
  const DiskLook* disks = disks_ == nullptr ? nullptr : FindDiskLook(core, disks_);
  if (checked_ && (disks == nullptr || IsOver(core, disks->round))) {
    if (disks != nullptr) AddFindings(JudgeDisks(core.state, disks->round.answers), *checked_);
    *out->mutable_result() = *std::move(checked_);
    done_ = true;
    return Pull::kMessage;
  }
  if (doing == said_) return Pull::kWait;
  said_ = doing;
  out->set_doing(doing);
  return Pull::kMessage;
}

}  // namespace motley::coordinator
