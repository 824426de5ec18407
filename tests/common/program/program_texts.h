// Small valid programs as text, and a way to break them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace motley {

// One layer, recomputed; one microbatch. The example of docs/program.md.
inline constexpr char kTraining[] =
    "program 1 training rank 0 of 2 units 3 microbatches 2\n"
    "parameters 16448,49280\n"
    "gradients 49280,16448\n"
    "0 gather unit=0 buffer=0\n"
    "1 forward unit=0 mb=0 buffer=0 keep=all after=0\n"
    "2 release buffer=0\n"
    "3 gather unit=1 buffer=1\n"
    "4 forward unit=1 mb=0 buffer=1 keep=boundary after=3\n"
    "5 release buffer=1\n"
    "6 gather unit=2 buffer=0 after=2\n"
    "7 forward unit=2 mb=0 buffer=0 keep=all after=6\n"
    "8 backward unit=2 mb=0 buffer=0 grad=1\n"
    "9 release buffer=0\n"
    "10 gather unit=1 buffer=1 after=5\n"
    "11 reduce_scatter unit=2 grad=1 after=8\n"
    "12 recompute unit=1 mb=0 buffer=1 after=10\n"
    "13 backward unit=1 mb=0 buffer=1 grad=0\n"
    "14 release buffer=1\n"
    "15 gather unit=0 buffer=0 after=9\n"
    "16 reduce_scatter unit=1 grad=0 after=13\n"
    "17 backward unit=0 mb=0 buffer=0 grad=1 after=11,15\n"
    "18 release buffer=0\n"
    "19 reduce_scatter unit=0 grad=1 after=17\n"
    "20 reduce_scalars after=7\n"
    "21 optimizer_step after=20\n";

// A tied head whose embedding stays in parameter buffer 0 and gradient buffer 1 throughout.
inline constexpr char kTied[] =
    "program 1 training rank 0 of 2 units 2 microbatches 2\n"
    "parameters 16384,64\n"
    "gradients 64,16384\n"
    "0 gather unit=0 buffer=0\n"
    "1 gather unit=1 buffer=1\n"
    "2 forward unit=0 mb=0 buffer=0 keep=all after=0\n"
    "3 forward unit=1 mb=0 buffer=1 tied=0 keep=all after=1\n"
    "4 backward unit=1 mb=0 buffer=1 tied=0 grad=0 tied_grad=1\n"
    "5 reduce_scatter unit=1 grad=0 after=4\n"
    "6 backward unit=0 mb=0 buffer=0 grad=1\n"
    "7 reduce_scatter unit=0 grad=1 after=6\n"
    "8 reduce_scalars\n"
    "9 optimizer_step after=8\n";

// A rank without samples.
inline constexpr char kIdle[] =
    "program 1 training rank 1 of 2 units 2 microbatches -\n"
    "parameters 16384\n"
    "gradients 16384,64\n"
    "0 gather unit=0 buffer=0\n"
    "1 release buffer=0 after=0\n"
    "2 gather unit=1 buffer=0 after=1\n"
    "3 zero_grad unit=1 grad=1\n"
    "4 reduce_scatter unit=1 grad=1 after=3\n"
    "5 zero_grad unit=0 grad=0\n"
    "6 reduce_scatter unit=0 grad=0 after=5\n"
    "7 reduce_scalars\n"
    "8 optimizer_step after=7\n";

inline constexpr char kEvaluation[] =
    "program 1 evaluation rank 0 of 2 units 2 microbatches 2\n"
    "parameters 16384,64\n"
    "gradients -\n"
    "0 gather unit=0 buffer=0\n"
    "1 gather unit=1 buffer=1\n"
    "2 forward unit=0 mb=0 buffer=0 keep=nothing after=0\n"
    "3 forward unit=1 mb=0 buffer=1 keep=nothing after=1\n"
    "4 release buffer=0\n"
    "5 reduce_scalars after=3\n";

// Lines of `base` that begin with a key of `edits` (a header word, or an instruction's index) are replaced; appended ones come
// last.
inline std::string Edited(const char* base, const std::map<std::string, std::string>& edits, const std::string& appended = "") {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(base, '\n', absl::SkipEmpty())) {
    const std::string word = std::vector<std::string>(absl::StrSplit(line, ' '))[0];
    const auto edit = edits.find(word);
    lines.push_back(edit == edits.end() ? std::string(line) : absl::StrCat(word, " ", edit->second));
  }
  return absl::StrCat(absl::StrJoin(lines, "\n"), "\n", appended);
}

}  // namespace motley
