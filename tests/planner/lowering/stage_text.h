// The program writer's values as short text, for golden strings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/program/program.h"
#include "gtest/gtest.h"
#include "planner/lowering/stage_steps.h"
#include "planner/plan/schedule.h"

namespace motley::planner {

// Microbatches of one sample, as many as the schedule has rounds, on one member.
inline StageSchedule ScheduleOf(const std::string& actions) {
  StageSchedule schedule;
  auto parsed = ParseActions(actions, 1000);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  schedule.actions = *std::move(parsed);
  int64_t rounds = 0;
  for (const Action& action : schedule.actions) rounds = std::max(rounds, action.last);
  schedule.members.emplace_back();
  for (int64_t k = 0; k < rounds; ++k) schedule.members[0].push_back({k, 1, k});
  return schedule;
}

// A stage that computes `units_of` by virtual stage, of a model of `units` units; unit u has 10 (u + 1) elements.
inline StageTraits StageOfUnits(std::vector<std::vector<int32_t>> units_of, int32_t units) {
  StageTraits traits;
  for (const auto& own : units_of) traits.units.insert(traits.units.end(), own.begin(), own.end());
  std::sort(traits.units.begin(), traits.units.end());
  traits.units_of = std::move(units_of);
  for (int32_t u = 0; u < units; ++u) traits.elements.push_back(10 * (u + 1));
  return traits;
}

// "F1.0" forward of unit 1 in round 0 ("F1" of all rounds, "F1-3.0" of units 1 to 3); where buffers were placed "B1.0:0/2" finds
// parameters in buffer 0 and adds to gradient buffer 2; "<1" begins when all ranks have passed step 1. Then "-0" frees parameter
// buffer 0, "+2:0" gathers unit 2 into it, "/1:2" reduces unit 1 out of gradient buffer 2, "=1:2" to all; "@3" by group 3, where
// that is not group 0, "[5@2]" five elements of it from the second on.
inline std::string StepsText(const StageSteps& stage) {
  std::string text;
  const auto add = [&text](char what, const UnitCollective& c) {
    absl::StrAppend(&text, " ", std::string(1, what), c.unit, c.more_units > 0 ? absl::StrCat("-", c.unit + c.more_units) : "",
                    ":", c.buffer, c.group != 0 ? absl::StrCat("@", c.group) : "",
                    c.elements.whole() ? "" : absl::StrCat("[", c.elements.count, "@", c.elements.first, "]"));
  };
  for (const UnitCollective& gathered : stage.gathered) add('+', gathered);
  for (const StageStep& step : stage.steps) {
    absl::StrAppend(&text, " ", std::string(1, "FBIW"[static_cast<int>(step.kind)]), step.unit);
    if (step.more_units > 0) absl::StrAppend(&text, "-", step.last_unit());
    if (step.round != kAllRounds) absl::StrAppend(&text, ".", step.round);
    if (step.parameters >= 0) absl::StrAppend(&text, ":", step.parameters);
    if (step.gradients >= 0) absl::StrAppend(&text, "/", step.gradients);
    if (step.waits_for >= 0) absl::StrAppend(&text, "<", step.waits_for);
    for (const int32_t buffer : step.released) absl::StrAppend(&text, " -", buffer);
    for (const UnitCollective& gathered : step.gathered) add('+', gathered);
    for (const UnitCollective& reduced : step.reduced) add('/', reduced);
  }
  return text.empty() ? text : text.substr(1);
}

// "20 30:2 5/3": buffers of so many elements, the second the home of unit 2, the third of a shard of unit 3.
inline std::string BuffersText(const std::vector<UnitBuffer>& buffers) {
  std::string text;
  for (const UnitBuffer& buffer : buffers) {
    absl::StrAppend(&text, text.empty() ? "" : " ", buffer.elements,
                    buffer.home_of >= 0 ? absl::StrCat(buffer.IsShard() ? "/" : ":", buffer.home_of) : "");
  }
  return text;
}

// Instructions as a program has them, without its header.
inline std::string InstructionsText(std::vector<Instruction> instructions) {
  Program program;
  program.instructions = std::move(instructions);
  const std::string text = ToText(program);
  return text.substr(text.find("\n0 ") + 1);
}
inline std::string OperationsText(const std::vector<Operation>& operations) {
  std::vector<Instruction> instructions;
  for (const Operation& op : operations) instructions.push_back({op, {}});
  return InstructionsText(std::move(instructions));
}

}  // namespace motley::planner
