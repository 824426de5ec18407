// What the rules of instructions (docs/inside/program.md lists them by number) share: the program, the present instruction, its
// errors, and what the header says. Part of Validate (program.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/program.h"
#include "common/program/program_index.h"
#include "common/program/program_order.h"

namespace motley {

struct ProgramCheck {
  // `program` has passed ValidateHeader.
  explicit ProgramCheck(const Program& program) : program(program), index(program), order(program) {}

  bool training() const { return program.kind == ProgramKind::kTraining; }
  int32_t head() const { return program.num_units - 1; }
  bool IsLayer(int32_t unit) const { return unit > 0 && unit < head(); }
  bool Held(int32_t unit) const { return unit >= 0 && unit < program.num_units && index.place[unit] >= 0; }

  absl::Status Error(const std::string& rule) const;
  absl::Status EndError(const std::string& rule) const;
  // That instruction `earlier` (-1 = none) has finished when the present one starts. The rule's words become a text only where it
  // is broken: programs are checked whenever one is made.
  template <typename... Words>
  absl::Status Ordered(int earlier, const Words&... rule) const {
    if (earlier < 0 || order.Before(earlier, at)) return absl::OkStatus();
    return Unordered(earlier, absl::StrCat(rule...));
  }
  absl::Status Unordered(int earlier, const std::string& rule) const;
  template <typename T>
  absl::Status InRange(const char* what, int32_t number, const std::vector<T>& list) const {
    if (number >= 0 && static_cast<size_t>(number) < list.size()) return absl::OkStatus();
    return Error(absl::StrCat(what, " ", number, " does not exist; the program has ", list.size()));
  }
  absl::Status UnitInRange(int64_t unit) const;
  absl::Status Holds(int32_t unit) const;
  // Whose arrays the rank may have: what it holds, and the embedding of a tied head.
  absl::Status HoldsArray(int32_t unit) const { return unit == 0 && Held(head()) ? absl::OkStatus() : Holds(unit); }
  absl::Status InGroup(int32_t group) const;
  // That `root` is a rank of a group that exists.
  absl::Status RootInGroup(int32_t root, int32_t group) const;
  // A home's own units are all that it takes.
  absl::Status CheckHome(const char* what, int32_t buffer, const std::vector<UnitBuffer>& buffers, int32_t unit) const;

  // check(unit) for each unit of a range, which must exist.
  template <typename Function>
  absl::Status ForUnits(int32_t first, int32_t more, Function check) const {
    MOTLEY_RETURN_IF_ERROR(RangeExists(first, more));
    for (int32_t unit = first; unit <= first + more; ++unit) MOTLEY_RETURN_IF_ERROR(check(unit));
    return absl::OkStatus();
  }
  // check(unit, microbatch) for each of a compute instruction or copy; the rank holds the units. Backwards begin with the last
  // one.
  template <typename Op, typename Function>
  absl::Status ForCells(const Op& op, bool backward, Function check) const {
    MOTLEY_RETURN_IF_ERROR(ForUnits(op.unit, op.more_units, [this](int32_t unit) { return Holds(unit); }));
    MOTLEY_RETURN_IF_ERROR(MicrobatchesExist(op.microbatch, op.more_microbatches));
    for (int32_t i = 0; i <= op.more_units; ++i) {
      const int32_t unit = op.unit + (backward ? op.more_units - i : i);
      for (int32_t k = 0; k <= op.more_microbatches; ++k) MOTLEY_RETURN_IF_ERROR(check(unit, op.microbatch + k));
    }
    return absl::OkStatus();
  }

  // Whose shards a unit's elements come from or go to: only ranks that share the unit out with this one.
  absl::Status SharesOut(int32_t unit, const UnitBuffer& shard, int32_t group) const;

  const Program& program;
  const ProgramIndex index;
  const ProgramOrder order;
  int at = 0;  // the present instruction

 private:
  absl::Status RangeExists(int32_t first, int32_t more) const;
  absl::Status MicrobatchesExist(int32_t first, int32_t more) const;
};

}  // namespace motley
