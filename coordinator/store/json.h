// Stored values as JSON text: what is read back whole and never searched. Unknown keys are ignored, missing ones have their
// defaults.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_owner.h"
#include "common/data/data_summary.h"
#include "common/job/job.h"
#include "common/session/profile.h"
#include "common/session/step.h"
#include "coordinator/store/store.h"

namespace motley::coordinator {

// The same configuration gives the same text: equality of job bodies is equality of these.
std::string ConfigToJson(const JobConfig& config);
// Empty for none: one without an id.
std::string OwnerToJson(const CheckpointOwner& owner);
std::string StepToJson(const StepStats& step);
// Of a job's data and of its validations'.
std::string DataToJson(const DataSummary& data, const DataSummary& validation);
std::string ToJson(const ComputeProfile& profile);
std::string ToJson(const CollectiveProfile& profile);
std::string RanksToJson(const std::vector<EpochRow::Rank>& ranks);
std::string ProgramsToJson(const std::vector<std::string>& programs);

// DATA_LOSS: not what was written.
absl::StatusOr<JobConfig> ConfigFromJson(const std::string& text);
absl::StatusOr<CheckpointOwner> OwnerFromJson(const std::string& text);
absl::StatusOr<StepStats> StepFromJson(const std::string& text);
absl::StatusOr<std::pair<DataSummary, DataSummary>> DataFromJson(const std::string& text);
absl::StatusOr<ComputeProfile> ComputeProfileFromJson(const std::string& text);
absl::StatusOr<CollectiveProfile> CollectiveProfileFromJson(const std::string& text);
absl::StatusOr<std::vector<EpochRow::Rank>> RanksFromJson(const std::string& text);
absl::StatusOr<std::vector<std::string>> ProgramsFromJson(const std::string& text);

}  // namespace motley::coordinator
