#include "common/program/program_check.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"

namespace motley {

absl::Status ProgramCheck::Error(const std::string& rule) const {
  const Operation& op = program.instructions[at].op;
  return absl::FailedPreconditionError(
      absl::StrCat("program of rank ", program.rank, ", instruction ", at, " (", std::string(OperationName(op)), "): ", rule));
}

absl::Status ProgramCheck::EndError(const std::string& rule) const {
  return absl::FailedPreconditionError(absl::StrCat("program of rank ", program.rank, ", at its end: ", rule));
}

absl::Status ProgramCheck::Unordered(int earlier, const std::string& rule) const {
  return Error(absl::StrCat(rule, "; no chain of lane order and `after` leads from instruction ", earlier, " here"));
}

absl::Status ProgramCheck::UnitInRange(int64_t unit) const {
  if (unit >= 0 && unit < program.num_units) return absl::OkStatus();
  return Error(absl::StrCat("unit ", unit, " does not exist; the program has ", program.num_units));
}

absl::Status ProgramCheck::Holds(int32_t unit) const {
  MOTLEY_RETURN_IF_ERROR(UnitInRange(unit));
  if (Held(unit)) return absl::OkStatus();
  return Error(absl::StrCat("the rank does not hold unit ", unit, "; it holds ",
                            program.units.empty() ? "none" : Echo(absl::StrJoin(program.units, ","))));
}

absl::Status ProgramCheck::InGroup(int32_t group) const {
  MOTLEY_RETURN_IF_ERROR(InRange("group", group, program.groups));
  if (index.in_group[group]) return absl::OkStatus();
  return Error(absl::StrCat("the rank is not in group ", group, " (", Echo(absl::StrJoin(program.groups[group], ",")), ")"));
}

absl::Status ProgramCheck::RootInGroup(int32_t root, int32_t group) const {
  const std::vector<int32_t>& members = program.groups[group];
  if (std::find(members.begin(), members.end(), root) != members.end()) return absl::OkStatus();
  return Error(absl::StrCat("root ", root, " is not in group ", group, " (", Echo(absl::StrJoin(members, ",")), ")"));
}

absl::Status ProgramCheck::CheckHome(const char* what, int32_t buffer, const std::vector<UnitBuffer>& buffers,
                                     int32_t unit) const {
  const UnitBuffer& declared = buffers[buffer];
  if (declared.home_of < 0 || declared.IsHomeOf(unit)) return absl::OkStatus();
  return Error(absl::StrCat(what, " buffer ", buffer, " is the home of unit ", declared.home_of, ", not for unit ", unit));
}

absl::Status ProgramCheck::SharesOut(int32_t unit, const UnitBuffer& shard, int32_t group) const {
  const std::vector<int32_t>& among = program.groups[shard.shard_group];
  for (const int32_t member : program.groups[group]) {
    if (std::find(among.begin(), among.end(), member) != among.end()) continue;
    return Error(absl::StrCat("unit ", unit, " is shared out among group ", shard.shard_group, ", in which rank ", member,
                              " of group ", group, " is not"));
  }
  return absl::OkStatus();
}

absl::Status ProgramCheck::RangeExists(int32_t first, int32_t more) const {
  if (more < 0) return Error("a range of units ends before it begins");
  MOTLEY_RETURN_IF_ERROR(UnitInRange(first));
  return UnitInRange(int64_t{first} + more);
}

absl::Status ProgramCheck::MicrobatchesExist(int32_t first, int32_t more) const {
  if (more < 0) return Error("a range of microbatches ends before it begins");
  MOTLEY_RETURN_IF_ERROR(InRange("microbatch", first, program.microbatches));
  if (static_cast<size_t>(first) + static_cast<size_t>(more) < program.microbatches.size()) return absl::OkStatus();
  return Error(
      absl::StrCat("microbatch ", int64_t{first} + more, " does not exist; the program has ", program.microbatches.size()));
}

}  // namespace motley
