#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/program/program.h"
#include "common/program/program_order.h"
#include "tests/common/base/folders.h"
#include "tests/common/program/program_builder.h"
#include "tests/common/program/program_texts.h"
#include "tests/common/program/wide_program_texts.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
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
  std::vector<const char*> texts(std::begin(kValidTexts), std::end(kValidTexts));
  texts.insert(texts.end(), std::begin(kAllWideTexts), std::end(kAllWideTexts));
  for (const char* text : texts) {
    const auto program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(ToText(*program), text);
    EXPECT_TRUE(Validate(*program).ok()) << Validate(*program) << "\n" << text;
  }
}

TEST(ProgramValidateTest, TheDocumentedExampleIsThisOne) {
  std::ifstream page(SourceFolder() + "/docs/inside/program.md");
  std::string line;
  std::vector<std::string> examples;
  bool inside = false;
  while (std::getline(page, line)) {
    const std::string text = line.starts_with("    ") ? line.substr(4) : "";
    if (text.starts_with("program 6 ")) examples.emplace_back();
    inside = !text.empty() && (inside || text.starts_with("program 6 "));
    if (inside) absl::StrAppend(&examples.back(), text, "\n");
  }
  EXPECT_THAT(examples, ElementsAre(kTraining, kFirstStage));
}

TEST(ProgramValidateTest, ATiedEmbeddingMayBeReducedTwice) {
  const auto program = ParseProgram(Edited(kTied,
                                           {{"6", "reduce_scatter block=0 grad=1 group=0"},
                                            {"7", "backward block=0 mb=0 buffer=0 grad=1 after=6"},
                                            {"8", "reduce_scatter block=0 grad=1 group=0 after=7"},
                                            {"9", "reduce_scalars"}},
                                           "10 optimizer_step after=9\n"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(Validate(*program).ok()) << Validate(*program);
}

TEST(ProgramValidateTest, VersionIsChecked) {
  Program program = BuildProgram();
  program.version = 1;
  EXPECT_THAT(std::string(Validate(program).message()), HasSubstr("header: version 1 is not known"));
}

TEST(ProgramValidateTest, RowsOfTheHeadAreBounded) {
  for (const int64_t rows : {int64_t{0}, kHeadChunkTokens - 1, kMostHeadRows + 1}) {
    Program program = BuildProgram();
    program.head_rows = rows;
    EXPECT_THAT(std::string(Validate(program).message()), HasSubstr("header: head_rows must be 1024 to 4096"));
  }
}

// Those in which every instruction is needed, releases apart: the last one of a buffer frees it for nobody.
std::vector<Program> ProgramsToBreak() {
  std::vector<Program> programs = {BuildProgram({.tied = true, .recompute = true})};
  for (const char* text : kValidTexts) {
    // A rank without samples gathers for the others.
    if (Program program = *ParseProgram(text); !program.microbatches.empty()) programs.push_back(std::move(program));
  }
  for (const char* text : kWideTexts) programs.push_back(*ParseProgram(text));
  return programs;
}

TEST(ProgramValidateTest, DroppingAnyNeededInstructionIsNoticed) {
  for (const Program& whole : ProgramsToBreak()) {
    for (size_t drop = 0; drop < whole.instructions.size(); ++drop) {
      Program program = whole;
      program.instructions.erase(program.instructions.begin() + static_cast<int64_t>(drop));
      for (Instruction& instruction : program.instructions) {
        std::erase(instruction.after, static_cast<int32_t>(drop));
        for (int32_t& dependency : instruction.after) dependency -= dependency > static_cast<int32_t>(drop) ? 1 : 0;
      }
      const bool may_go = std::holds_alternative<Release>(whole.instructions[drop].op);
      EXPECT_TRUE(!Validate(program).ok() || may_go) << "without instruction " << drop << "\n" << ToText(whole);
    }
  }
}

TEST(ProgramValidateTest, DroppingAnyDependencyThatNothingElseImpliesIsNoticed) {
  for (const Program& whole : ProgramsToBreak()) {
    for (size_t i = 0; i < whole.instructions.size(); ++i) {
      for (const int32_t dependency : whole.instructions[i].after) {
        Program program = whole;
        std::erase(program.instructions[i].after, dependency);
        const bool implied = ProgramOrder(program).Before(dependency, static_cast<int>(i));
        EXPECT_EQ(Validate(program).ok(), implied) << "instruction " << i << " without " << dependency << "\n" << ToText(whole);
      }
    }
  }
}

TEST(ProgramValidateTest, AHugeHeaderWithoutInstructionsIsRefusedOrSmall) {
  Program program;
  program.num_units = 1 << 16;
  program.instructions = {{ReduceScalars{}, {}}, {OptimizerStep{}, {0}}};
  program.microbatches = {{1, 0}};
  for (int32_t unit = 0; unit < program.num_units; ++unit) program.units.push_back(unit);
  EXPECT_THAT(std::string(Validate(program).message()),
              HasSubstr("2 instructions are fewer than 1 microbatches x 65536 units held"));
  // Nothing to compute, so there is no table of microbatches: only what is never reduced.
  program.microbatches.clear();
  EXPECT_THAT(std::string(Validate(program).message()), HasSubstr("the gradients of unit 0 are never reduced"));
  program.units.clear();
  EXPECT_TRUE(Validate(program).ok()) << Validate(program);
  program.num_units = (1 << 16) + 1;
  EXPECT_THAT(std::string(Validate(program).message()), HasSubstr("header: units must be 2"));
}

TEST(ProgramValidateTest, MessagesRepeatOnlyTheBeginningOfAHugeGroup) {
  Program program = BuildProgram();
  program.world = 100000;
  for (int32_t rank = 2; rank < program.world; ++rank) program.groups[0].push_back(rank);
  const absl::Status twice = Validate(program);  // it has rank 2 already
  EXPECT_EQ(twice.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_LT(twice.message().size(), 1000u);
  program.groups[0].erase(program.groups[0].begin());
  std::get<Gather>(program.instructions[0].op).group = 0;
  const absl::Status outside = Validate(program);
  EXPECT_THAT(std::string(outside.message()), HasSubstr("the rank is not in group 0 (2,3,4"));
  EXPECT_LT(outside.message().size(), 1000u);
}

// One sample each, from a hundred thousand peers: quick, because nothing walks over all that was handed over before.
TEST(ProgramValidateTest, AMicrobatchMayComeInManyParts) {
  constexpr int32_t kSamples = 100000;
  Program program = *ParseProgram(kEvaluationStage);
  program.rank = 1;
  program.world = kSamples + 2;
  program.units = {1};
  program.parameter_buffers[0].home_of = 1;
  program.microbatches = {{kSamples, 7}};
  program.instructions = {{Gather{1, 0, 1}, {}}};
  for (int32_t i = kSamples - 1; i >= 0; --i) {
    program.instructions.push_back({ReceiveActivation{1, 0, 7 + i, 1, i + 2}, {}});
  }
  program.instructions.push_back({Forward{1, 0, 0, -1, Keep::kNothing}, {0, kSamples}});
  program.instructions.push_back({ReduceScalars{}, {kSamples + 1}});
  EXPECT_TRUE(Validate(program).ok()) << Validate(program);
  std::get<ReceiveActivation>(program.instructions[kSamples / 2].op).samples = 2;
  EXPECT_THAT(std::string(Validate(program).message()), HasSubstr("are handed over twice"));
}

TEST(ProgramValidateTest, RandomProgramsNeverCrash) {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) (void)Validate(RandomProgram(random)).ok();
}

}  // namespace
}  // namespace motley
