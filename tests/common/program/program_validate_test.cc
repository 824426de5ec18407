#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/program/program.h"
#include "tests/common/program/program_builder.h"
#include "tests/common/program/program_texts.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

TEST(ProgramValidateTest, LayeredProgramsPass) {
  for (const bool tied : {false, true}) {
    for (const bool recompute : {false, true}) {
      for (const bool evaluation : {false, true}) {
        for (const std::vector<int64_t>& microbatches : {std::vector<int64_t>{}, {5}, {2, 2, 1}}) {
          for (const int32_t layers : {0, 1, 5}) {
            const Program program = BuildProgram({layers, microbatches, tied, recompute, evaluation});
            EXPECT_TRUE(Validate(program).ok()) << Validate(program) << "\n" << ToText(program);
          }
        }
      }
    }
  }
}

TEST(ProgramValidateTest, HandWrittenProgramsPass) {
  for (const char* text : {kTraining, kTied, kIdle, kEvaluation}) {
    const auto program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(ToText(*program), text);
    EXPECT_TRUE(Validate(*program).ok()) << Validate(*program);
  }
}

TEST(ProgramValidateTest, TheDocumentedExampleIsThisOne) {
  std::ifstream page(std::string(MOTLEY_SOURCE_DIR) + "/docs/program.md");
  std::string line, example;
  bool inside = false;
  while (std::getline(page, line)) {
    const std::string text = line.starts_with("    ") ? line.substr(4) : "";
    inside = !text.empty() && (inside || text.starts_with("program 1 "));
    if (inside) absl::StrAppend(&example, text, "\n");
  }
  EXPECT_EQ(example, kTraining);
}

TEST(ProgramValidateTest, ATiedEmbeddingMayBeReducedTwice) {
  const auto program = ParseProgram(Edited(kTied,
                                           {{"6", "reduce_scatter unit=0 grad=1"},
                                            {"7", "backward unit=0 mb=0 buffer=0 grad=1 after=6"},
                                            {"8", "reduce_scatter unit=0 grad=1 after=7"},
                                            {"9", "reduce_scalars"}},
                                           "10 optimizer_step after=9\n"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(Validate(*program).ok()) << Validate(*program);
}

TEST(ProgramValidateTest, VersionIsChecked) {
  Program program = BuildProgram();
  program.version = 2;
  EXPECT_THAT(std::string(Validate(program).message()), HasSubstr("header: version 2 is not known"));
}

TEST(ProgramValidateTest, DroppingAnyNeededInstructionOfALayeredProgramIsNoticed) {
  const Program whole = BuildProgram({.tied = true, .recompute = true});
  for (size_t drop = 0; drop < whole.instructions.size(); ++drop) {
    Program program = whole;
    program.instructions.erase(program.instructions.begin() + static_cast<int64_t>(drop));
    for (Instruction& instruction : program.instructions) {
      std::erase(instruction.after, static_cast<int32_t>(drop));
      for (int32_t& dependency : instruction.after) dependency -= dependency > static_cast<int32_t>(drop) ? 1 : 0;
    }
    // The last release of a buffer frees it for nobody.
    const bool may_go = std::holds_alternative<Release>(whole.instructions[drop].op);
    EXPECT_TRUE(!Validate(program).ok() || may_go) << "without instruction " << drop << "\n" << ToText(whole);
  }
}

TEST(ProgramValidateTest, RandomProgramsNeverCrash) {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) (void)Validate(RandomProgram(random)).ok();
}

}  // namespace
}  // namespace motley
