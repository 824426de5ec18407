// What there is to say of the data that a node has seen: for the storage checks of a set-up, and for a probe beside a job.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/data/data_summary.h"
#include "common/job/job.h"
#include "common/session/session.h"

namespace motley::coordinator {

// The data with which a node's are compared.
struct DataReference {
  DataSummary data, validation;
  NodeName node;  // that has seen them; empty: the job began with them
};

// By this nodes agree or do not.
std::string DataKey(const DataSummary& data, const DataSummary& validation);

// Empty: the node's are the same. Else "data.path '/d' holds other data (...) than on node n1 (...)".
std::string OtherData(const JobConfig& config, const StorageReport& report, const DataReference& reference);

// Whether the job can train on these data: they are long enough, made for its seq_len, within the model's vocabulary, and of the
// tokenizer of the weights that it begins with. FAILED_PRECONDITION says what to do.
absl::Status CheckJobsData(const JobConfig& config, const StorageReport& report);

}  // namespace motley::coordinator
