#include "worker/daemon/rank_nccl.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/logging.h"
#include "common/device/machine_limits.h"
#include "worker/daemon/rank_answer.h"

namespace motley::worker {
namespace {

// "2.28.9" is 22809; 0: no version.
int VersionOf(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '.');
  int major = 0, minor = 0, patch = 0;
  const bool is_one = parts.size() == 3 && absl::SimpleAtoi(parts[0], &major) && absl::SimpleAtoi(parts[1], &minor) &&
                      absl::SimpleAtoi(parts[2], &patch) && major > 0 && major < 100 && minor >= 0 && minor < 100 && patch >= 0 &&
                      patch < 100;
  return is_one ? major * 10000 + minor * 100 + patch : 0;
}

}  // namespace

int NcclOf(const std::string& rank_binary) {
  const absl::StatusOr<RankAnswer> answer =
      AskRank(rank_binary, "--nccl", absl::ZeroDuration());  // a trial that hangs has said it
  if (!answer.ok()) return 0;
  const std::string& last = answer->last_line;
  const int version = VersionOf(last);
  if (version == 0) LogWarning(absl::StrCat("cards go without NCCL: ", rank_binary, " --nccl says: ", last));
  const MachineLimits limits = MachineLimitsHere();
  for (const std::string& small : {SharedMemoryTooSmall(limits), LockedMemoryTooSmall(limits)}) {
    if (version > 0 && !small.empty()) LogWarning(absl::StrCat("NCCL may fail in a job: ", small));
  }
  return version;
}

}  // namespace motley::worker
