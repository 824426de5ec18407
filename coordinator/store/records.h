// What the coordinator keeps, as rows of its database and back.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/store/row.h"
#include "coordinator/store/store.h"

namespace motley::coordinator {

Row ToRow(const JobRecord& job);
Row ToRow(const EpochRow& epoch);
Row ToRow(const PlanRow& plan);
Row ToRow(const EventRecord& event);
Row ToRow(const ComputeProfile& profile, const MeasuredSpeed& speed, int64_t sequence);
Row ToRow(const CollectiveProfile& profile, int64_t sequence);
Row ToRow(const AuthorityRecord& authority);
Row ToRow(const TokenRecord& token);
Row ToRow(const MemberRecord& member);
Row ToRow(const TermRecord& term);
Row ToRow(const UnwantedRow& unwanted);

// A row has the columns of its table. DATA_LOSS: its text is not what ToRow makes.
absl::StatusOr<JobRecord> JobOf(const Row& row);
absl::StatusOr<EpochRow> EpochOf(const Row& row);
absl::StatusOr<PlanRow> PlanOf(const Row& row);
EventRecord EventOf(const Row& row);
MeasuredSpeed SpeedOf(const Row& profile);
AuthorityRecord AuthorityOf(const Row& row);
TokenRecord TokenOf(const Row& row);
MemberRecord MemberOf(const Row& row);
TermRecord TermRecordOf(const Row& row);
UnwantedRow UnwantedOfRow(const Row& row);

inline const std::string& TextAt(const Row& row, size_t column) { return std::get<std::string>(row[column]); }
inline int64_t IntegerAt(const Row& row, size_t column) { return std::get<int64_t>(row[column]); }

}  // namespace motley::coordinator
