#include "common/session/rank_build.h"

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "common/program/program.h"

namespace motley {

const char kRankBuild[] = "ranks-0003";

std::string RankBuild() { return absl::StrCat(kRankBuild, "/", kProgramVersion, "/", kStorageOrder); }

}  // namespace motley
