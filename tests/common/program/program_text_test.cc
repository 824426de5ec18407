#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/program/program.h"
#include "common/program/program_fields.h"
#include "tests/common/base/folders.h"
#include "tests/common/program/program_builder.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

constexpr char kHeader[] =
    "program 6 training rank 0 of 5 units 8 microbatches 4@0,4@4,3@8\n"
    "holds 0,1,7\n"
    "groups 0,1 4,2,3\n"
    "parameters 65536,65536:1\n"
    "gradients 65536\n"
    "offloads -\n"
    "slots -\n";

TEST(ProgramTextTest, ReadsWhatThePageShows) {
  const auto program = ParseProgram(absl::StrCat(kHeader,
                                                 "0 gather block=0 buffer=1 group=1\n"
                                                 "1 forward block=7 mb=2 buffer=1 tied=0 keep=boundary after=0\n"
                                                 "2 backward block=7 mb=2 buffer=1 tied=0 grad=0 tied_grad=3 after=0,1\n"
                                                 "3 send_activation block=2 mb=2 first=9 samples=1 peer=4 after=1\n"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->kind, ProgramKind::kTraining);
  EXPECT_EQ(program->world, 5);
  EXPECT_EQ(program->num_units, 8);
  EXPECT_EQ(program->microbatches, (std::vector<Microbatch>{{4, 0}, {4, 4}, {3, 8}}));
  EXPECT_EQ(program->units, (std::vector<int32_t>{0, 1, 7}));
  EXPECT_EQ(program->groups, (std::vector<std::vector<int32_t>>{{0, 1}, {4, 2, 3}}));
  EXPECT_EQ(program->parameter_buffers, (std::vector<UnitBuffer>{{65536, -1}, {65536, 1}}));
  EXPECT_EQ(program->gradient_buffers, (std::vector<UnitBuffer>{{65536, -1}}));
  ASSERT_EQ(program->instructions.size(), 4u);
  EXPECT_EQ(std::get<Gather>(program->instructions[0].op).buffer, 1);
  EXPECT_EQ(std::get<Gather>(program->instructions[0].op).group, 1);
  const Forward& forward = std::get<Forward>(program->instructions[1].op);
  EXPECT_EQ(forward.unit, 7);
  EXPECT_EQ(forward.microbatch, 2);
  EXPECT_EQ(forward.tied_buffer, 0);
  EXPECT_EQ(forward.keep, Keep::kBoundary);
  EXPECT_EQ(std::get<Backward>(program->instructions[2].op).tied_grad, 3);
  EXPECT_EQ(program->instructions[2].after, (std::vector<int32_t>{0, 1}));
  const SendActivation& send = std::get<SendActivation>(program->instructions[3].op);
  EXPECT_EQ(send.unit, 2);
  EXPECT_EQ(send.microbatch, 2);
  EXPECT_EQ(send.first, 9);
  EXPECT_EQ(send.samples, 1);
  EXPECT_EQ(send.peer, 4);
}

TEST(ProgramTextTest, RoundTripsOverRandomPrograms) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    const std::string text = ToText(RandomProgram(random));
    const auto parsed = ParseProgram(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    ASSERT_EQ(ToText(*parsed), text);
  }
}

// Byte by byte, so that it does not depend on what the text form knows of the fields.
bool Same(const Operation& a, const Operation& b) {
  return std::visit(
      [&b]<typename Op>(const Op& op) {
        const Op* other = std::get_if<Op>(&b);
        if (other == nullptr || std::is_empty_v<Op>) return other != nullptr;
        static_assert(std::is_empty_v<Op> || std::has_unique_object_representations_v<Op>);
        return std::memcmp(&op, other, sizeof(op)) == 0;
      },
      a);
}

TEST(ProgramTextTest, RoundTripKeepsEveryField) {
  std::mt19937 random(8);
  for (int i = 0; i < 100; ++i) {
    const Program before = RandomProgram(random);
    const auto after = ParseProgram(ToText(before));
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after->kind, before.kind);
    EXPECT_EQ(after->rank, before.rank);
    EXPECT_EQ(after->world, before.world);
    EXPECT_EQ(after->num_units, before.num_units);
    EXPECT_EQ(after->units, before.units);
    EXPECT_EQ(after->groups, before.groups);
    EXPECT_EQ(after->microbatches, before.microbatches);
    EXPECT_EQ(after->parameter_buffers, before.parameter_buffers);
    EXPECT_EQ(after->gradient_buffers, before.gradient_buffers);
    EXPECT_EQ(after->slots, before.slots);
    ASSERT_EQ(after->instructions.size(), before.instructions.size());
    for (size_t j = 0; j < before.instructions.size(); ++j) {
      EXPECT_EQ(after->instructions[j].after, before.instructions[j].after);
      EXPECT_TRUE(Same(after->instructions[j].op, before.instructions[j].op)) << ToText(before) << "instruction " << j;
    }
  }
}

// An operation as the page's grammar writes it: "gather block=" int " buffer=" int
class GrammarPrinter {
 public:
  explicit GrammarPrinter(std::string_view name) : text_(absl::StrCat("\"", std::string(name))) {}
  void Field(const char* key, int32_t) { absl::StrAppend(&text_, Quote(), " ", key, "=\" int"); }
  void Optional(const char* key, int32_t) { Maybe(key, "int"); }
  void Span(const char* key, int32_t, int32_t) { absl::StrAppend(&text_, Quote(), " ", key, "=\" span"); }
  void OptionalSpan(const char* key, int32_t, int32_t) { Maybe(key, "span"); }
  void Elements(const char* key, const ArrayRange&) { Maybe(key, "part"); }
  void Operators(const char* key, uint32_t) { Maybe(key, "operators"); }
  void Word(const char* key, Keep) { absl::StrAppend(&text_, Quote(), " ", key, "=\" keep"); }
  void Word(const char* key, UnitSegment) { Maybe(key, "segment"); }
  void Word(const char* key, Exchanged) { absl::StrAppend(&text_, Quote(), " ", key, "=\" exchanged"); }
  std::string Text() { return absl::StrCat(text_, open_ ? "\"" : "", "\n"); }

 private:
  void Maybe(const char* key, const char* what) {
    absl::StrAppend(&text_, open_ ? "\"" : "", " [ \" ", key, "=\" ", what, " ]");
    open_ = false;
  }
  // The first field shares the quotes of the name.
  std::string Quote() { return std::exchange(open_, false) ? "" : " \""; }
  std::string text_;
  bool open_ = true;
};

TEST(ProgramTextTest, ThePageHasTheGrammarAndTheMeaningOfEveryOperation) {
  std::ifstream file(SourceFolder() + "/docs/inside/program.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const Operation& op : kEveryOperation) {
    GrammarPrinter grammar(OperationName(op));
    std::visit([&grammar](const auto& o) { program_fields::ForEachField(o, grammar); }, op);
    EXPECT_THAT(page.str(), HasSubstr(grammar.Text()));
    EXPECT_THAT(page.str(), HasSubstr(absl::StrCat("\n| `", std::string(OperationName(op)), "` | ")));
  }
  const auto has_words = [&page](const std::string& name, const auto& words) {
    std::string all;
    for (const std::string_view word : words) {
      if (!word.empty()) absl::StrAppend(&all, all.empty() ? "" : " | ", "\"", std::string(word), "\"");
    }
    const size_t line = page.str().find(absl::StrCat("\n    ", name, " "));
    ASSERT_NE(line, std::string::npos) << name;
    EXPECT_THAT(page.str().substr(line, page.str().find('\n', line + 1) - line), testing::EndsWith(absl::StrCat("= ", all)));
  };
  has_words("keep", WordsOf(Keep()));
  has_words("segment", WordsOf(UnitSegment()));
  has_words("exchanged", WordsOf(Exchanged()));
}

TEST(ProgramTextTest, CommentsBlanksAndEmptyListsAreRead) {
  const auto program = ParseProgram(
      "# a rank that only stores\n\n  program 6 evaluation rank 1 of 2 units 3 microbatches -  # none\r\n"
      "holds -\ngroups   0  1 # one each\nparameters 10\ngradients -\noffloads -\nslots -\n\n0   reduce_scalars   # the end\n");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->kind, ProgramKind::kEvaluation);
  EXPECT_TRUE(program->microbatches.empty());
  EXPECT_TRUE(program->units.empty());
  EXPECT_EQ(program->groups, (std::vector<std::vector<int32_t>>{{0}, {1}}));
  EXPECT_TRUE(program->gradient_buffers.empty());
  EXPECT_EQ(program->instructions.size(), 1u);
}

TEST(ProgramTextTest, RowsOfTheHeadAreSaidWhereTheyAreMore) {
  Program program = *ParseProgram(absl::StrCat(kHeader, ""));
  EXPECT_EQ(program.head_rows, kHeadChunkTokens);
  EXPECT_THAT(ToText(program), testing::Not(HasSubstr("head_rows")));
  program.head_rows = 2048;
  EXPECT_THAT(ToText(program), HasSubstr(" head_rows 2048\nholds "));
  EXPECT_EQ(ParseProgram(ToText(program))->head_rows, 2048);
}

struct BadText {
  const char* what;
  std::string text;
  const char* message;
};

TEST(ProgramTextTest, ErrorsNameTheLine) {
  const std::string h = kHeader;
  const std::string p = "program 6 training rank 0 of 1 units 3 microbatches -\n";
  const BadText cases[] = {
      {"empty", "", "line 1: it ends before its seven header lines"},
      {"header cut", "program 6 training rank 0 of 5 units 8 microbatches 1@0\nholds -\ngroups -\nparameters 1\n", "ends before"},
      {"other text", "plan 1\n", "line 1: expected 'program', got 'plan'"},
      {"older version", "program 2 training rank 0 of 1 units 3 microbatches -\n",
       "line 1: version 2 is not known, this build reads 6; the program comes from an older coordinator: update the coordinator"},
      {"newer version", "program 7 training rank 0 of 1 units 3 microbatches -\n", "from a newer coordinator: update this node"},
      {"kind", "program 6 dreaming rank 0 of 1 units 3 microbatches -\n", "got 'dreaming'"},
      {"header's rest", "program 6 training rank 0 of 1 units 3 microbatches - x\n", "line 1: expected 'head_rows', got 'x'"},
      {"header's end", "program 6 training rank 0 of 1 units 3 microbatches - head_rows 2048 x\n", "line 1: unexpected 'x'"},
      {"rows", "program 6 training rank 0 of 1 units 3 microbatches - head_rows many\n",
       "head_rows must be an integer, got 'many'"},
      {"number", "program 6 training rank zero of 1 units 3 microbatches -\n", "rank must be an integer, got 'zero'"},
      {"overflow", "program 6 training rank 99999999999 of 1 units 3 microbatches -\n", "must be an integer"},
      {"list", "program 6 training rank 0 of 1 units 3 microbatches 1@0,,2@1\n", "microbatches must be 'samples@first', got ''"},
      {"first sample missing", "program 6 training rank 0 of 1 units 3 microbatches 4\n", "must be 'samples@first', got '4'"},
      {"first sample empty", "program 6 training rank 0 of 1 units 3 microbatches 4@\n",
       "microbatches must be an integer, got ''"},
      {"first sample twice", "program 6 training rank 0 of 1 units 3 microbatches 4@0@1\n", "'samples@first', got '4@0@1'"},
      {"holds", p + "parameters 1\n", "line 2: expected 'holds', got 'parameters'"},
      {"holds' rest", p + "holds 0 1\n", "line 2: unexpected '1'"},
      {"groups", p + "holds 0\nparameters 1\n", "line 3: expected 'groups', got 'parameters'"},
      {"group none", p + "holds 0\ngroups\n", "line 3: group must be an integer, got ''"},
      {"group of none", p + "holds 0\ngroups 0 -\n", "line 3: a group must name ranks, got '-'"},
      {"groups' rest", p + "holds 0\ngroups - 0\n", "line 3: unexpected '0'"},
      {"group's rank", p + "holds 0\ngroups 0, 1\n", "line 3: group must be an integer, got ''"},
      {"home", p + "holds 0\ngroups -\nparameters 1:\n", "line 4: parameters must be an integer, got ''"},
      {"two homes", p + "holds 0\ngroups -\nparameters 1\ngradients 1:0:1\n", "line 5: gradients must be an integer, got '0:1'"},
      {"slots", p + "holds 0\ngroups -\nparameters 1\ngradients 1\noffloads -\n0 reduce_scalars\n",
       "line 7: expected 'slots', got '0'"},
      {"slot's bytes", p + "holds 0\ngroups -\nparameters 1\ngradients 1\noffloads -\nslots 4@0\n",
       "line 7: slots must be an integer, got '4@0'"},
      {"index", h + "1 reduce_scalars\n", "line 8: expected instruction 0, got 1"},
      {"operation", h + "0 think block=1\n", "line 8: 'think' is no operation"},
      {"missing field", h + "0 gather block=1\n", "line 8: expected 'buffer=...', got ''"},
      {"wrong field", h + "0 gather block=1 grad=2\n", "line 8: expected 'buffer=...', got 'grad=2'"},
      {"no group", h + "0 gather block=1 buffer=2\n", "line 8: expected 'group=...', got ''"},
      {"no peer", h + "0 send_gradient block=1 mb=0 first=0 samples=1 after=0\n", "line 8: expected 'peer=...', got 'after=0'"},
      {"field's value", h + "0 gather block=x buffer=2\n", "line 8: block must be an integer, got 'x'"},
      {"keep", h + "0 forward block=1 mb=0 buffer=0 keep=some\n", "line 8: expected keep=all"},
      {"range", h + "0 gather block=3-1 buffer=0 group=0\n", "line 8: block must be an integer or a range that ascends"},
      {"range of one", h + "0 zero_grad block=3-3 grad=0\n", "a range that ascends from 0 or more, got '3-3'"},
      {"range's end", h + "0 zero_grad block=3- grad=0\n", "line 8: block must be an integer, got ''"},
      {"elements", h + "0 gather block=3 elements=0@4 buffer=0 group=0\n", "line 8: elements must be at least 1, from 0 on"},
      {"elements' first", h + "0 gather block=3 elements=4@-1 buffer=0 group=0\n", "elements must be at least 1, from 0 on"},
      {"segment", h + "0 recompute block=3 mb=0 segment=half buffer=0\n",
       "line 8: expected segment=attention, segment=mlp, segment=logits, segment=loss, got 'segment=half'"},
      {"of", h + "0 all_reduce_activation block=3 mb=0 of=moments group=0\n",
       "line 8: expected of=activation, of=gradient, of=rows, got 'of=moments'"},
      {"offloads", p + "holds 0\ngroups -\nparameters 1\ngradients 1\nslots -\n", "line 6: expected 'offloads', got 'slots'"},
      {"offloads' words", p + "holds 0\ngroups -\nparameters 1\ngradients 1\noffloads weights\n",
       "line 6: expected '-' or of activations,parameters,gradients,optimizer some in this order, got 'weights'"},
      {"offloads' order", p + "holds 0\ngroups -\nparameters 1\ngradients 1\noffloads optimizer,parameters\n",
       "some in this order, got 'optimizer,parameters'"},
      {"all offloads", p + "holds 0\ngroups -\nparameters 1\ngradients 1\noffloads auto\n", "some in this order, got 'auto'"},
      {"operators", h + "0 recompute block=3 mb=0 buffer=0 ops=attention,qkv\n", "ops must name operators in their order"},
      {"operator", h + "0 recompute block=3 mb=0 buffer=0 ops=magic\n", "must name operators in their order, got 'magic'"},
      {"room", p + "holds 0\ngroups -\nparameters 1x\n", "line 4: parameters must be an integer, got ''"},
      {"room of one", p + "holds 0\ngroups -\nparameters 4x1\n", "line 4: parameters must not say x1"},
      {"homes", p + "holds 0\ngroups -\nparameters 4:2-1\n", "a range that ascends"},
      {"extra", h + "0 release buffer=0 block=1\n", "line 8: unexpected 'block=1'"},
      {"after", h + "0 release buffer=0 after=a\n", "line 8: after must be an integer, got 'a'"},
      {"after's rest", h + "0 release buffer=0 after=1 after=2\n", "line 8: unexpected 'after=2'"},
  };
  for (const BadText& bad : cases) {
    const auto program = ParseProgram(bad.text);
    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument) << bad.what;
    EXPECT_THAT(std::string(program.status().message()), HasSubstr(bad.message)) << bad.what;
  }
}

TEST(ProgramTextTest, CutTextNeverCrashes) {
  const std::string text = ToText(BuildProgram({.tied = true, .recompute = true}));
  for (size_t length = 0; length < text.size(); ++length) {
    const auto program = ParseProgram(std::string_view(text).substr(0, length));
    if (program.ok()) {
      EXPECT_LE(ToText(*program).size(), text.size());
    }
  }
}

}  // namespace
}  // namespace motley
