// Small valid programs as text, and a way to break them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace motley {

// One layer, recomputed; one microbatch. The first example of docs/inside/program.md.
inline constexpr char kTraining[] =
    "program 6 training rank 0 of 2 units 3 microbatches 2@0\n"
    "holds 0,1,2\n"
    "groups 0,1\n"
    "parameters 16448,49280\n"
    "gradients 49280,16448\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=0 buffer=0 group=0\n"
    "1 forward block=0 mb=0 buffer=0 keep=all after=0\n"
    "2 release buffer=0\n"
    "3 gather block=1 buffer=1 group=0\n"
    "4 forward block=1 mb=0 buffer=1 keep=boundary after=3\n"
    "5 release buffer=1\n"
    "6 gather block=2 buffer=0 group=0 after=2\n"
    "7 forward block=2 mb=0 buffer=0 keep=all after=6\n"
    "8 backward block=2 mb=0 buffer=0 grad=1\n"
    "9 release buffer=0\n"
    "10 gather block=1 buffer=1 group=0 after=5\n"
    "11 reduce_scatter block=2 grad=1 group=0 after=8\n"
    "12 recompute block=1 mb=0 buffer=1 after=10\n"
    "13 backward block=1 mb=0 buffer=1 grad=0\n"
    "14 release buffer=1\n"
    "15 gather block=0 buffer=0 group=0 after=9\n"
    "16 reduce_scatter block=1 grad=0 group=0 after=13\n"
    "17 backward block=0 mb=0 buffer=0 grad=1 after=11,15\n"
    "18 release buffer=0\n"
    "19 reduce_scatter block=0 grad=1 group=0 after=17\n"
    "20 reduce_scalars after=7\n"
    "21 optimizer_step after=20\n";

// A tied head whose embedding stays in parameter buffer 0 and gradient buffer 1 throughout.
inline constexpr char kTied[] =
    "program 6 training rank 0 of 2 units 2 microbatches 2@0\n"
    "holds 0,1\n"
    "groups 0,1\n"
    "parameters 16384,64\n"
    "gradients 64,16384\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=0 buffer=0 group=0\n"
    "1 gather block=1 buffer=1 group=0\n"
    "2 forward block=0 mb=0 buffer=0 keep=all after=0\n"
    "3 forward block=1 mb=0 buffer=1 tied=0 keep=all after=1\n"
    "4 backward block=1 mb=0 buffer=1 tied=0 grad=0 tied_grad=1\n"
    "5 reduce_scatter block=1 grad=0 group=0 after=4\n"
    "6 backward block=0 mb=0 buffer=0 grad=1\n"
    "7 reduce_scatter block=0 grad=1 group=0 after=6\n"
    "8 reduce_scalars\n"
    "9 optimizer_step after=8\n";

// A rank without samples.
inline constexpr char kIdle[] =
    "program 6 training rank 1 of 2 units 2 microbatches -\n"
    "holds 0,1\n"
    "groups 0,1\n"
    "parameters 16384\n"
    "gradients 16384,64\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=0 buffer=0 group=0\n"
    "1 release buffer=0 after=0\n"
    "2 gather block=1 buffer=0 group=0 after=1\n"
    "3 zero_grad block=1 grad=1\n"
    "4 reduce_scatter block=1 grad=1 group=0 after=3\n"
    "5 zero_grad block=0 grad=0\n"
    "6 reduce_scatter block=0 grad=0 group=0 after=5\n"
    "7 reduce_scalars\n"
    "8 optimizer_step after=7\n";

inline constexpr char kEvaluation[] =
    "program 6 evaluation rank 0 of 2 units 2 microbatches 2@0\n"
    "holds 0,1\n"
    "groups 0,1\n"
    "parameters 16384,64\n"
    "gradients -\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=0 buffer=0 group=0\n"
    "1 gather block=1 buffer=1 group=0\n"
    "2 forward block=0 mb=0 buffer=0 keep=nothing after=0\n"
    "3 forward block=1 mb=0 buffer=1 keep=nothing after=1\n"
    "4 release buffer=0\n"
    "5 reduce_scalars after=3\n";

// The first of two stages: the embedding and a layer, resident in their homes, on a single rank. GPipe with two microbatches.
// The second example of docs/inside/program.md.
inline constexpr char kFirstStage[] =
    "program 6 training rank 0 of 2 units 4 microbatches 2@0,2@2\n"
    "holds 0,1\n"
    "groups 0 1\n"
    "parameters 16448:0,49280:1\n"
    "gradients 16448:0,49280:1\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=0 buffer=0 group=0\n"
    "1 gather block=1 buffer=1 group=0\n"
    "2 forward block=0 mb=0 buffer=0 keep=all after=0\n"
    "3 forward block=1 mb=0 buffer=1 keep=all after=1\n"
    "4 send_activation block=2 mb=0 first=0 samples=2 peer=1 after=3\n"
    "5 forward block=0 mb=1 buffer=0 keep=all\n"
    "6 forward block=1 mb=1 buffer=1 keep=all\n"
    "7 send_activation block=2 mb=1 first=2 samples=2 peer=1 after=6\n"
    "8 receive_gradient block=2 mb=0 first=0 samples=2 peer=1\n"
    "9 backward block=1 mb=0 buffer=1 grad=1 after=8\n"
    "10 backward block=0 mb=0 buffer=0 grad=0\n"
    "11 receive_gradient block=2 mb=1 first=2 samples=2 peer=1\n"
    "12 backward block=1 mb=1 buffer=1 grad=1 after=11\n"
    "13 reduce_scatter block=1 grad=1 group=0 after=12\n"
    "14 backward block=0 mb=1 buffer=0 grad=0\n"
    "15 reduce_scatter block=0 grad=0 group=0 after=14\n"
    "16 reduce_scalars\n"
    "17 optimizer_step after=16\n";

// The last stage of the same step: the other layer and the head.
inline constexpr char kLastStage[] =
    "program 6 training rank 1 of 2 units 4 microbatches 2@0,2@2\n"
    "holds 2,3\n"
    "groups 0 1\n"
    "parameters 49280:2,16448:3\n"
    "gradients 49280:2,16448:3\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=2 buffer=0 group=1\n"
    "1 gather block=3 buffer=1 group=1\n"
    "2 receive_activation block=2 mb=0 first=0 samples=2 peer=0\n"
    "3 forward block=2 mb=0 buffer=0 keep=all after=0,2\n"
    "4 forward block=3 mb=0 buffer=1 keep=all after=1\n"
    "5 receive_activation block=2 mb=1 first=2 samples=2 peer=0\n"
    "6 forward block=2 mb=1 buffer=0 keep=all after=5\n"
    "7 forward block=3 mb=1 buffer=1 keep=all\n"
    "8 backward block=3 mb=0 buffer=1 grad=1\n"
    "9 backward block=2 mb=0 buffer=0 grad=0\n"
    "10 send_gradient block=2 mb=0 first=0 samples=2 peer=0 after=9\n"
    "11 backward block=3 mb=1 buffer=1 grad=1\n"
    "12 reduce_scatter block=3 grad=1 group=1 after=11\n"
    "13 backward block=2 mb=1 buffer=0 grad=0\n"
    "14 send_gradient block=2 mb=1 first=2 samples=2 peer=0 after=13\n"
    "15 reduce_scatter block=2 grad=0 group=1 after=13\n"
    "16 reduce_scalars\n"
    "17 optimizer_step after=16\n";

// One of the two ranks of a middle stage, with 3 of 4 samples; the stage before has two ranks with 2 samples each. Its layer is
// recomputed, and gathered and reduced with the other rank.
inline constexpr char kMiddleStage[] =
    "program 6 training rank 2 of 5 units 3 microbatches 3@0\n"
    "holds 1\n"
    "groups 0,1 2,3 4\n"
    "parameters 49280\n"
    "gradients 49280\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=1 buffer=0 group=1\n"
    "1 receive_activation block=1 mb=0 first=0 samples=2 peer=0\n"
    "2 receive_activation block=1 mb=0 first=2 samples=1 peer=1\n"
    "3 forward block=1 mb=0 buffer=0 keep=boundary after=0,2\n"
    "4 send_activation block=2 mb=0 first=0 samples=3 peer=4 after=3\n"
    "5 release buffer=0\n"
    "6 gather block=1 buffer=0 group=1 after=5\n"
    "7 receive_gradient block=2 mb=0 first=0 samples=3 peer=4\n"
    "8 recompute block=1 mb=0 buffer=0 after=6\n"
    "9 backward block=1 mb=0 buffer=0 grad=0 after=7\n"
    "10 release buffer=0\n"
    "11 send_gradient block=1 mb=0 first=0 samples=2 peer=0 after=9\n"
    "12 send_gradient block=1 mb=0 first=2 samples=1 peer=1\n"
    "13 reduce_scatter block=1 grad=0 group=1 after=9\n"
    "14 reduce_scalars\n"
    "15 optimizer_step after=14\n";

// The last of two stages with a tied head: a copy of the embedding, which the rank does not hold, comes from the first stage's
// rank, and the copy's gradients go back to it.
inline constexpr char kTiedLastStage[] =
    "program 6 training rank 1 of 2 units 2 microbatches 2@0\n"
    "holds 1\n"
    "groups 1 0,1\n"
    "parameters 64:1,16384\n"
    "gradients 64:1,16384\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=0 buffer=1 group=1\n"
    "1 gather block=1 buffer=0 group=0\n"
    "2 receive_activation block=1 mb=0 first=0 samples=2 peer=0\n"
    "3 forward block=1 mb=0 buffer=0 tied=1 keep=all after=1,2\n"
    "4 backward block=1 mb=0 buffer=0 tied=1 grad=0 tied_grad=1\n"
    "5 send_gradient block=1 mb=0 first=0 samples=2 peer=0 after=4\n"
    "6 reduce_scatter block=1 grad=0 group=0 after=4\n"
    "7 reduce_scatter block=0 grad=1 group=1\n"
    "8 reduce_scalars\n"
    "9 optimizer_step after=8\n";

// The first of two stages in an evaluation.
inline constexpr char kEvaluationStage[] =
    "program 6 evaluation rank 0 of 2 units 2 microbatches 2@0\n"
    "holds 0\n"
    "groups 0 1\n"
    "parameters 16384:0\n"
    "gradients -\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=0 buffer=0 group=0\n"
    "1 forward block=0 mb=0 buffer=0 keep=nothing after=0\n"
    "2 send_activation block=1 mb=0 first=0 samples=2 peer=1 after=1\n"
    "3 reduce_scalars\n";

inline constexpr const char* kValidTexts[] = {kTraining,  kTied,        kIdle,          kEvaluation,     kFirstStage,
                                              kLastStage, kMiddleStage, kTiedLastStage, kEvaluationStage};

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
