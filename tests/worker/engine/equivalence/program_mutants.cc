#include "tests/worker/engine/equivalence/program_mutants.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/program/program_fields.h"

namespace motley::engine {
namespace {

// Changes the field of number `wanted`, and counts them all.
struct FieldChanger {
  int wanted = -1, change = 0, count = 0;
  std::string what;
  void Field(const char* key, int32_t& value) {
    if (count++ != wanted) return;
    what = absl::StrCat(key, " ", value, " -> ", value + change);
    value += change;
  }
  void Optional(const char* key, int32_t& value) {
    if (std::string_view(key) != "tp") Field(key, value);
  }
  // The engine's programs have ranges of one alone; what they could also name is held to the rules, not to numbers.
  void Span(const char* key, int32_t& first, int32_t&) { Field(key, first); }
  void OptionalSpan(const char*, int32_t&, int32_t&) {}
  void Elements(const char*, ArrayRange&) {}
  void Operators(const char*, uint32_t&) {}
  void Word(const char*, UnitSegment&) {}
  void Word(const char*, Exchanged&) {}
  void Word(const char*, Keep& value) {
    if (count++ != wanted) return;
    what = "keep";
    value = value == Keep::kAll ? Keep::kBoundary : Keep::kAll;
  }
};

FieldChanger Change(Operation& operation, int wanted, int change) {
  FieldChanger changer{.wanted = wanted, .change = change};
  std::visit([&](auto& op) { program_fields::ForEachField(op, changer); }, operation);
  return changer;
}

// The program without an instruction. Who waited for it waits for what it had waited for.
Program Without(Program program, size_t dropped) {
  const std::vector<int32_t> inherited = program.instructions[dropped].after;
  program.instructions.erase(program.instructions.begin() + static_cast<int64_t>(dropped));
  for (size_t i = dropped; i < program.instructions.size(); ++i) {
    std::set<int32_t> after;
    for (const int32_t a : program.instructions[i].after) {
      if (a < static_cast<int32_t>(dropped)) after.insert(a);
      if (a > static_cast<int32_t>(dropped)) after.insert(a - 1);
      if (a == static_cast<int32_t>(dropped)) after.insert(inherited.begin(), inherited.end());
    }
    program.instructions[i].after.assign(after.begin(), after.end());
  }
  return program;
}

// The sender's end of a hand-over and the receiver's, as one text; empty for what needs no other rank. The k-th of a name on one
// rank meets the k-th of that name on each other.
std::string MeetingOf(const Program& program, const Operation& operation) {
  const auto pair = [](int from, int to) { return absl::StrCat("hand-over ", from, " to ", to); };
  return std::visit(
      [&](const auto& op) -> std::string {
        if constexpr (requires { op.group; }) return absl::StrCat("collective of group ", op.group);
        if constexpr (requires { op.peer; }) {
          return op.kTraits.lane == Lane::kSend ? pair(program.rank, op.peer) : pair(op.peer, program.rank);
        }
        return "";
      },
      operation);
}

class Mutator {
 public:
  explicit Mutator(const Program& program) : program_(program) {}

  std::vector<Mutant> All() {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      DropAfter(i);
      ChangeFields(i);
      SwapWithNext(i);
      mutants_.push_back({Mistake::kDropped, Name(i) + "not there", Without(program_, i), IsCopy(i)});
    }
    for (size_t m = 0; m < program_.microbatches.size(); ++m) {
      for (const int change : {-1, 1}) ShiftSample(m, change);
    }
    return std::move(mutants_);
  }

 private:
  bool IsCopy(size_t i) const { return LaneOf(program_.instructions[i].op) == Lane::kCopy; }
  std::string Name(size_t i) const { return absl::StrCat(i, " ", std::string(OperationName(program_.instructions[i].op)), ": "); }

  void DropAfter(size_t i) {
    const std::vector<int32_t>& after = program_.instructions[i].after;
    for (size_t a = 0; a < after.size(); ++a) {
      Program program = program_;
      std::vector<int32_t>& left = program.instructions[i].after;
      left.erase(left.begin() + static_cast<int64_t>(a));
      mutants_.push_back({Mistake::kDroppedAfter, Name(i) + absl::StrCat("not after ", after[a]), std::move(program),
                          IsCopy(i) || IsCopy(static_cast<size_t>(after[a]))});
    }
  }

  void ChangeFields(size_t i) {
    Operation operation = program_.instructions[i].op;
    const int fields = Change(operation, -1, 0).count;
    for (int field = 0; field < fields; ++field) {
      for (const int change : {-1, 1}) {
        Program program = program_;
        const FieldChanger changer = Change(program.instructions[i].op, field, change);
        mutants_.push_back({Mistake::kChangedField, Name(i) + changer.what, std::move(program), IsCopy(i)});
      }
    }
  }

  // With the next one of its lane. Whoever named one of them names the other then, as far as that is earlier.
  void SwapWithNext(size_t i) {
    size_t j = i + 1;
    const Lane lane = LaneOf(program_.instructions[i].op);
    while (j < program_.instructions.size() && LaneOf(program_.instructions[j].op) != lane) ++j;
    if (j == program_.instructions.size()) return;
    Program program = program_;
    std::swap(program.instructions[i].op, program.instructions[j].op);
    mutants_.push_back({Mistake::kSwapped, Name(i) + absl::StrCat("changes places with ", j), std::move(program), IsCopy(i)});
  }

  void ShiftSample(size_t m, int change) {
    Program program = program_;
    program.microbatches[m].first += change;
    mutants_.push_back({Mistake::kShiftedSample, absl::StrCat("microbatch ", m, " begins at ", program.microbatches[m].first),
                        std::move(program)});
  }

  const Program& program_;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> MutantsOf(const Program& program) { return Mutator(program).All(); }

std::vector<AgreedMutant> AgreedMutantsOf(const std::vector<Program>& programs) {
  std::map<std::string, std::vector<std::pair<size_t, size_t>>> meetings;  // rank and instruction
  for (size_t r = 0; r < programs.size(); ++r) {
    std::map<std::string, int> count;
    for (size_t i = 0; i < programs[r].instructions.size(); ++i) {
      const std::string name = MeetingOf(programs[r], programs[r].instructions[i].op);
      if (!name.empty()) meetings[absl::StrCat(name, ", number ", count[name]++)].emplace_back(r, i);
    }
  }
  std::vector<AgreedMutant> mutants;
  for (const auto& [name, ends] : meetings) {
    AgreedMutant& mutant = mutants.emplace_back(AgreedMutant{name, programs});
    for (const auto& [r, i] : ends) mutant.programs[r] = Without(std::move(mutant.programs[r]), i);
  }
  return mutants;
}

}  // namespace motley::engine
