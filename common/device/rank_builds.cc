#include "common/device/rank_builds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley {
namespace {

std::string Sm(int architecture) { return absl::StrCat("sm_", architecture); }

std::string Architectures(const RankBuild& build) {
  return absl::StrCat(std::string(build.libtorch), ": ",
                      absl::StrJoin(build.architectures, ", ", [](std::string* out, int a) { absl::StrAppend(out, Sm(a)); }));
}

// Who runs a package has no ./run: the page says which package brings the rank.
std::string SetupCommand(const RankBuild& build) {
  if (&build == &RankBuilds().front()) return "./run build";
  return absl::StrCat("./run setup --libtorch ", std::string(build.libtorch), " (packages: docs/use/lab-cards.md)");
}

}  // namespace

const std::vector<RankBuild>& RankBuilds() {
  static const auto* const builds = new std::vector<RankBuild>{{"2.11.0", 13000, "580", {75, 80, 86, 90, 100, 120}},
                                                               {"2.7.1", 12060, "525", {50, 60, 70, 75, 80, 86, 90}}};
  return *builds;
}

std::string RankBinaryName(const RankBuild& build) {
  if (build.libtorch == RankBuilds().front().libtorch) return "motley-rank";
  return absl::StrCat("motley-rank-", std::string(build.libtorch));
}

std::string CudaVersion(int cuda) { return absl::StrCat(cuda / 1000, ".", cuda % 1000 / 10); }

bool Covers(const RankBuild& build, int compute_capability) {
  return std::any_of(build.architectures.begin(), build.architectures.end(), [&](int architecture) {
    return architecture / 10 == compute_capability / 10 && architecture <= compute_capability;
  });
}

bool Runs(const RankBuild& build, int driver_cuda) { return driver_cuda / 1000 >= build.cuda / 1000; }

absl::StatusOr<RankBuild> ChooseRankBuild(int compute_capability, int driver_cuda, const std::string& driver,
                                          const std::vector<std::string>& present) {
  const auto is_present = [&](const RankBuild& build) {
    return std::find(present.begin(), present.end(), build.libtorch) != present.end();
  };
  std::vector<std::string> remedies;
  const RankBuild* too_new = nullptr;  // for the driver
  for (const RankBuild& build : RankBuilds()) {
    if (!Covers(build, compute_capability)) continue;
    if (!Runs(build, driver_cuda)) {
      if (too_new == nullptr || is_present(build)) too_new = &build;
    } else if (is_present(build)) {
      return build;
    } else {
      remedies.push_back(SetupCommand(build));
    }
  }
  if (too_new == nullptr && remedies.empty()) {
    std::vector<std::string> have;
    for (const RankBuild& build : RankBuilds()) have.push_back(Architectures(build));
    return absl::FailedPreconditionError(
        absl::StrCat("no build of motley-rank has kernels for ", Sm(compute_capability), " (", absl::StrJoin(have, "; "), ")"));
  }
  if (too_new == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("no motley-rank at hand has kernels for ", Sm(compute_capability),
                                                      "; make one that has them: ", absl::StrJoin(remedies, ", or ")));
  }
  remedies.insert(remedies.begin(),
                  absl::StrCat("install a driver of branch ", std::string(too_new->driver_branch), " or newer"));
  return absl::FailedPreconditionError(absl::StrCat("driver ", driver, " runs CUDA ", CudaVersion(driver_cuda),
                                                    ", and motley-rank of libtorch ", std::string(too_new->libtorch), " needs ",
                                                    CudaVersion(too_new->cuda), ": ", absl::StrJoin(remedies, ", or ")));
}

}  // namespace motley
