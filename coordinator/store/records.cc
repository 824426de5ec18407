#include "coordinator/store/records.h"

#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "coordinator/store/json.h"

namespace motley::coordinator {
namespace {

std::string Number(double value) { return absl::StrCat(value); }
double Real(const std::string& text) {
  double value = 0;
  return absl::SimpleAtod(text, &value) ? value : 0;
}

}  // namespace

Row ToRow(const JobRecord& job) {
  return {job.id.value(),
          ConfigToJson(job.config),
          std::string(JobPhaseName(job.phase)),
          job.reason,
          job.epoch.value(),
          job.step,
          job.submitted_unix_ms,
          job.started_unix_ms,
          job.finished_unix_ms,
          StepToJson(job.last_step),
          job.newest_checkpoint,
          Number(job.predicted_step_seconds),
          int64_t{job.stop_requested},
          job.data.digest,
          int64_t{job.plannings_begun},
          job.data.bytes,
          static_cast<int64_t>(job.error_code),
          job.owner_uid,
          job.owner,
          job.uid.value(),
          int64_t{job.has_unnamed_checkpoints},
          job.adopted,
          OwnerToJson(job.initial_of),
          DataToJson(job.data, job.validation),
          job.initial_digest,
          job.safe_checkpoint,
          job.go_back.epoch.value(),
          job.go_back.step,
          job.adopted_below.value()};
}

Row ToRow(const EpochRow& epoch) { return {epoch.job.value(), epoch.epoch.value(), epoch.unix_ms, RanksToJson(epoch.ranks)}; }

Row ToRow(const PlanRow& plan) {
  return {plan.job.value(),
          plan.epoch.value(),
          plan.plan_json,
          plan.plan_text,
          plan.explanation,
          plan.trace_json,
          ProgramsToJson(plan.programs),
          plan.inputs};
}

Row ToRow(const EventRecord& event) {
  return {event.sequence,     event.unix_ms,        event.job.value(),   event.kind,
          event.node.value(), event.device.value(), event.epoch.value(), event.message};
}

Row ToRow(const ComputeProfile& profile, const MeasuredSpeed& speed, int64_t sequence) {
  return {"compute",
          profile.digest,
          profile.device.value(),
          ToJson(profile),
          Number(speed.tokens_per_second),
          Number(speed.flops_per_second),
          sequence,
          speed.model};
}

Row ToRow(const CollectiveProfile& profile, int64_t sequence) {
  return {"collective", profile.digest, "", ToJson(profile), "0", "0", sequence, ""};
}

Row ToRow(const AuthorityRecord& authority) {
  return {authority.number, authority.private_key, authority.certificate, authority.made_unix_ms};
}

Row ToRow(const TokenRecord& token) {
  return {token.id, token.secret_hash, int64_t{token.reusable}, token.joins, token.made_unix_ms, token.expires_unix_ms};
}

Row ToRow(const MemberRecord& member) {
  return {member.node.value(),
          member.key_hash,
          member.token,
          member.authority,
          member.joined_unix_ms,
          member.until_unix_ms,
          absl::StrJoin(member.coordinators, ",")};
}

Row ToRow(const UnwantedRow& unwanted) { return {unwanted.node.value(), unwanted.files.job.value(), unwanted.files.uid.value()}; }
Row ToRow(const TermRecord& term) { return {term.term.number, term.term.id, int64_t{term.own}}; }

absl::StatusOr<JobRecord> JobOf(const Row& row) {
  JobRecord job;
  job.id = JobId(TextAt(row, 0));
  MOTLEY_ASSIGN_OR_RETURN(job.config, ConfigFromJson(TextAt(row, 1)));
  job.config.checkpoint = Decided(job.config.checkpoint);  // older builds wrote no word for it
  MOTLEY_ASSIGN_OR_RETURN(job.phase, ParseJobPhase(TextAt(row, 2)));
  job.reason = TextAt(row, 3);
  job.epoch = Epoch(IntegerAt(row, 4));
  job.step = IntegerAt(row, 5);
  job.submitted_unix_ms = IntegerAt(row, 6), job.started_unix_ms = IntegerAt(row, 7), job.finished_unix_ms = IntegerAt(row, 8);
  MOTLEY_ASSIGN_OR_RETURN(job.last_step, StepFromJson(TextAt(row, 9)));
  job.newest_checkpoint = TextAt(row, 10);
  job.predicted_step_seconds = Real(TextAt(row, 11));
  job.stop_requested = IntegerAt(row, 12) != 0;
  job.plannings_begun = static_cast<int>(IntegerAt(row, 14));
  job.error_code = static_cast<absl::StatusCode>(IntegerAt(row, 16));
  job.owner = TextAt(row, 18);
  job.owner_uid = job.owner.empty() ? -1 : IntegerAt(row, 17);
  job.uid = JobUid(TextAt(row, 19));
  job.has_unnamed_checkpoints = IntegerAt(row, 20) != 0;
  job.adopted = TextAt(row, 21);
  MOTLEY_ASSIGN_OR_RETURN(job.initial_of, OwnerFromJson(TextAt(row, 22)));
  if (TextAt(row, 23).empty()) {  // of before there was other data than text
    if (!TextAt(row, 13).empty()) job.data = TextSummary(IntegerAt(row, 15), TextAt(row, 13));
  } else {
    MOTLEY_ASSIGN_OR_RETURN(std::tie(job.data, job.validation), DataFromJson(TextAt(row, 23)));
  }
  job.initial_digest = TextAt(row, 24);
  job.safe_checkpoint = TextAt(row, 25);
  job.go_back = {Epoch(IntegerAt(row, 26)), IntegerAt(row, 27)};
  job.adopted_below = Epoch(IntegerAt(row, 28));
  return job;
}

absl::StatusOr<EpochRow> EpochOf(const Row& row) {
  EpochRow epoch{JobId(TextAt(row, 0)), Epoch(IntegerAt(row, 1)), IntegerAt(row, 2), {}};
  MOTLEY_ASSIGN_OR_RETURN(epoch.ranks, RanksFromJson(TextAt(row, 3)));
  return epoch;
}

absl::StatusOr<PlanRow> PlanOf(const Row& row) {
  PlanRow plan{
      JobId(TextAt(row, 0)), Epoch(IntegerAt(row, 1)), TextAt(row, 2), TextAt(row, 3), TextAt(row, 4), TextAt(row, 5), {},
      TextAt(row, 7)};
  MOTLEY_ASSIGN_OR_RETURN(plan.programs, ProgramsFromJson(TextAt(row, 6)));
  return plan;
}

EventRecord EventOf(const Row& row) {
  return {IntegerAt(row, 0),        IntegerAt(row, 1),        JobId(TextAt(row, 2)),    TextAt(row, 3),
          NodeName(TextAt(row, 4)), DeviceId(TextAt(row, 5)), Epoch(IntegerAt(row, 6)), TextAt(row, 7)};
}

MeasuredSpeed SpeedOf(const Row& row) {
  MeasuredSpeed speed = {Real(TextAt(row, 4)), Real(TextAt(row, 5)), TextAt(row, 7)};
  // Who plans by one that cannot be read says so.
  if (const absl::StatusOr<ComputeProfile> profile = ComputeProfileFromJson(TextAt(row, 3)); profile.ok()) {
    speed.attention = profile->attention;
    speed.load = profile->load;
    speed.cut_short = profile->cut_short;
    speed.usable_bytes = profile->usable_bytes;
    speed.memory_corrections = profile->memory_corrections;
    speed.probed_samples = LargestThatRan(profile->trials);
  }
  return speed;
}

AuthorityRecord AuthorityOf(const Row& row) { return {IntegerAt(row, 0), TextAt(row, 1), TextAt(row, 2), IntegerAt(row, 3)}; }

TokenRecord TokenOf(const Row& row) {
  return {TextAt(row, 0), TextAt(row, 1), IntegerAt(row, 2) != 0, IntegerAt(row, 3), IntegerAt(row, 4), IntegerAt(row, 5)};
}

MemberRecord MemberOf(const Row& row) {
  return {NodeName(TextAt(row, 0)),
          TextAt(row, 1),
          TextAt(row, 2),
          IntegerAt(row, 3),
          IntegerAt(row, 4),
          IntegerAt(row, 5),
          absl::StrSplit(TextAt(row, 6), ',', absl::SkipEmpty())};
}

UnwantedRow UnwantedOfRow(const Row& row) {
  return {NodeName(TextAt(row, 0)), {JobId(TextAt(row, 1)), JobUid(TextAt(row, 2)), JobUid()}};
}
TermRecord TermRecordOf(const Row& row) { return {{IntegerAt(row, 0), TextAt(row, 1)}, IntegerAt(row, 2) != 0}; }

}  // namespace motley::coordinator
