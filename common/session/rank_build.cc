#include "common/session/rank_build.h"

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/model/parameters.h"
#include "common/program/program.h"

namespace motley {

const char kRankBuild[] = "ranks-0007";

std::string RankBuild() { return absl::StrCat(kRankBuild, "/", kProgramVersion, "/", kStorageOrder); }

std::string RankBuildOfNode(DataAuthentication authentication, const std::string& data_address) {
  const bool bare = authentication == DataAuthentication::kNever && !IsLoopback(data_address);
  return absl::StrCat(RankBuild(), bare ? "" : "/codes");
}

}  // namespace motley
