#include "coordinator/state/initial_weights.h"

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"

namespace motley::coordinator {
namespace {

constexpr size_t kShownDigits = 12;

std::string WhatIsHeld(const std::string& digest) {
  return digest.empty() ? "no weights of HuggingFace" : absl::StrCat("weights of digest ", digest.substr(0, kShownDigits));
}

}  // namespace

std::string InitialFolder(const JobRecord& job) {
  const bool begins = job.newest_checkpoint.empty() && !AwaitsAdopted(job);
  return begins && !InitialIsJob(job.config.checkpoint) ? job.config.checkpoint.initial : "";
}

std::vector<JobInput> InputsNow(const JobRecord& job) {
  std::vector<JobInput> inputs = InputsOf(job.config);
  // One that has gone back goes on from a checkpoint, if not from step 0.
  const bool begins = job.newest_checkpoint.empty() && job.go_back.step == 0 && !AwaitsAdopted(job);
  const std::optional<JobInput> initial = ParseInput(job.config.checkpoint.initial);
  if (begins || !initial) return inputs;
  const bool is_data = ParseInput(job.config.data.path) == initial || ParseInput(job.config.data.validation_path) == initial;
  if (!is_data) std::erase_if(inputs, [&](const JobInput& input) { return input.id == initial->id; });
  return inputs;
}

WeightsReference ReferenceOfWeights(const JobRecord& job, const std::vector<std::pair<NodeName, std::string>>& digests) {
  if (!job.initial_digest.empty())
    return {job.initial_digest, absl::StrCat("it held ", WhatIsHeld(job.initial_digest), " when the job began")};
  std::map<std::string, int> count;
  for (const auto& [node, digest] : digests) ++count[digest];
  WeightsReference most = {"", absl::StrCat("on the other nodes it holds ", WhatIsHeld(""))};
  int times = 0;
  for (const auto& [node, digest] : digests) {
    if (count[digest] <= times) continue;
    times = count[digest];
    most = {digest, absl::StrCat("on node ", node.value(), " it holds ", WhatIsHeld(digest))};
  }
  return most;
}

std::string WeightsComplaint(const JobRecord& job, const WeightsReference& reference, const StorageReport& report) {
  if (InitialFolder(job).empty() || report.initial_digest == reference.digest) return "";
  return absl::StrCat("checkpoint.initial '", job.config.checkpoint.initial, "' holds ", WhatIsHeld(report.initial_digest),
                      ", and ", reference.where, "; copy the same folder there");
}

}  // namespace motley::coordinator
