#include "worker/daemon/rank_trial.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "worker/daemon/rank_answer.h"

namespace motley::worker {

namespace {

constexpr absl::Duration kToEnd = absl::Seconds(10);  // behind its last word: a busy host takes its time

}  // namespace

absl::Status TryRank(const std::string& rank_binary, const std::stop_token& stop) {
  const absl::StatusOr<RankAnswer> answer = AskRank(rank_binary, "--check", kToEnd, stop);
  if (!answer.ok()) return absl::FailedPreconditionError(absl::StrCat("ranks cannot start here: ", answer.status().message()));
  if (answer->how.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("ranks cannot start here: ", rank_binary, " ", answer->how,
                                                    answer->last_line.empty() ? "" : ": " + answer->last_line,
                                                    "; jobs fail on its devices until that is mended"));
}

std::set<std::string> RankBinaries(const std::vector<OfferedDevice>& devices) {
  std::set<std::string> binaries;
  for (const OfferedDevice& device : devices) binaries.insert(device.rank_binary);
  return binaries;
}

RankTrial::RankTrial(std::set<std::string> rank_binaries)
    : thread_([binaries = std::move(rank_binaries)](const std::stop_token& stop) {
        for (const std::string& binary : binaries) {
          const absl::Status status = TryRank(binary, stop);
          if (!status.ok() && !stop.stop_requested()) LogError(std::string(status.message()));
        }
      }) {}

}  // namespace motley::worker
