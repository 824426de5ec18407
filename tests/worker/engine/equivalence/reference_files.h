// What the PyTorch oracle reads: each job, its initial model, and what one device computed.
#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace motley::engine {

// For every model, size and dtype, and for packed rows, a folder in `folder`, beside the data:
//   model/          the initial weights as HuggingFace's model
//   job.json        the job file's sections; "steps": each step's numbers; "units": for each unit of the model its tensors' names
//   state-N.bin     after step N, in the dtype, little-endian: for each unit parameter, exp_avg, exp_avg_sq;
//                   each tensor as HuggingFace has it
absl::Status WriteReferences(const std::filesystem::path& folder);

// The same of what the ranks of random plans computed (DrawFamilyOnRowsJob), in folders "plan-00", "plan-01", ...; with "name",
// the job's, and "plan", its text, in job.json. A state after every fifth step and after the last.
absl::Status WritePlanned(const std::filesystem::path& folder, uint64_t seed, int64_t plans, int64_t steps);

}  // namespace motley::engine
