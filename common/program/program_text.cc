// The text form of a program. Grammar and example: docs/program.md.
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "common/program/program.h"
#include "common/program/program_fields.h"

namespace motley {
namespace {

constexpr std::array<std::pair<Keep, const char*>, 3> kKeeps = {
    {{Keep::kAll, "all"}, {Keep::kBoundary, "boundary"}, {Keep::kNothing, "nothing"}}};
constexpr std::array<std::pair<ProgramKind, const char*>, 2> kKinds = {
    {{ProgramKind::kTraining, "training"}, {ProgramKind::kEvaluation, "evaluation"}}};

template <typename Table, typename Value>
const char* NameOf(const Table& table, Value value) {
  for (const auto& [v, name] : table) {
    if (v == value) return name;
  }
  return "?";
}

std::string Text(int32_t value) { return absl::StrCat(value); }
std::string Text(const Microbatch& m) { return absl::StrCat(m.samples, "@", m.first); }
std::string Text(const UnitBuffer& b) {
  return b.home_of == -1 ? absl::StrCat(b.elements) : absl::StrCat(b.elements, ":", b.home_of);
}
std::string Text(const std::vector<int32_t>& list) { return absl::StrJoin(list, ","); }

template <typename T>
std::string ListToText(const std::vector<T>& list, const char* separator = ",") {
  if (list.empty()) return "-";
  return absl::StrJoin(list, separator, [](std::string* out, const T& item) { out->append(Text(item)); });
}

class FieldPrinter {
 public:
  explicit FieldPrinter(std::string& out) : out_(out) {}
  void Field(const char* key, int32_t value) { absl::StrAppend(&out_, " ", key, "=", value); }
  void Optional(const char* key, int32_t value) {
    if (value != -1) Field(key, value);
  }
  void Keeps(Keep keep) { absl::StrAppend(&out_, " keep=", NameOf(kKeeps, keep)); }

 private:
  std::string& out_;
};

// ---- parsing ----

// One line split at blanks, read from the left; errors name the line.
class Line {
 public:
  Line(int number, absl::string_view text) : number_(number), words_(absl::StrSplit(text, ' ', absl::SkipEmpty())) {}

  bool AtEnd() const { return next_ == words_.size(); }
  std::string Word() { return AtEnd() ? "" : words_[next_++]; }
  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("program text, line ", number_, ": ", what));
  }
  absl::Status Expect(const std::string& word) {
    const std::string got = Word();
    if (got == word) return absl::OkStatus();
    return Error(absl::StrCat("expected '", word, "', got ", Quoted(got)));
  }
  template <typename T>
  absl::Status Number(const char* what, T& out) {
    const std::string word = Word();
    return ParseNumber(what, word, out);
  }
  template <typename T>
  absl::Status List(const char* what, std::vector<T>& out) {
    const std::string word = Word();
    return ParseList(what, word, out);
  }
  // "4@8"
  absl::Status ParseNumber(const std::string& what, const std::string& word, Microbatch& out) const {
    const std::vector<std::string> parts = absl::StrSplit(word, '@');
    if (parts.size() != 2) return Error(absl::StrCat(what, " must be 'samples@first', got ", Quoted(word)));
    MOTLEY_RETURN_IF_ERROR(ParseNumber(what, parts[0], out.samples));
    return ParseNumber(what, parts[1], out.first);
  }
  // "65536" or "65536:3"
  absl::Status ParseNumber(const std::string& what, const std::string& word, UnitBuffer& out) const {
    const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits(':', 1));
    MOTLEY_RETURN_IF_ERROR(ParseNumber(what, parts[0], out.elements));
    return parts.size() == 1 ? absl::OkStatus() : ParseNumber(what, parts[1], out.home_of);
  }
  template <typename T>
  absl::Status ParseNumber(const std::string& what, const std::string& word, T& out) const {
    if (absl::SimpleAtoi(word, &out)) return absl::OkStatus();
    return Error(absl::StrCat(what, " must be an integer, got ", Quoted(word)));
  }
  template <typename T>
  absl::Status ParseList(const std::string& what, const std::string& word, std::vector<T>& out) const {
    if (word == "-") return absl::OkStatus();
    for (const absl::string_view item : absl::StrSplit(word, ',')) {
      MOTLEY_RETURN_IF_ERROR(ParseNumber(what, std::string(item), out.emplace_back()));
    }
    return absl::OkStatus();
  }
  absl::Status End() const {
    if (AtEnd()) return absl::OkStatus();
    return Error(absl::StrCat("unexpected ", Quoted(words_[next_])));
  }

 private:
  const int number_;
  const std::vector<std::string> words_;
  size_t next_ = 0;
};

// Reads the "key=value" words in the order in which the printer writes them; keeps the first error.
class FieldParser {
 public:
  explicit FieldParser(Line& line) : line_(line) { Advance(); }

  void Field(const char* key, int32_t& value) {
    if (!status_.ok()) return;
    if (key_ != key) {
      status_ = line_.Error(absl::StrCat("expected '", key, "=...', got ", Quoted(word_)));
      return;
    }
    status_ = line_.ParseNumber(key, value_, value);
    Advance();
  }
  void Optional(const char* key, int32_t& value) {
    value = -1;
    if (key_ == key) Field(key, value);
  }
  void Keeps(Keep& keep) {
    if (!status_.ok()) return;
    for (const auto& [value, name] : kKeeps) {
      if (key_ == "keep" && value_ == name) {
        keep = value;
        return Advance();
      }
    }
    status_ = line_.Error(absl::StrCat("expected keep=all, keep=boundary or keep=nothing, got ", Quoted(word_)));
  }
  absl::Status Finish(std::vector<int32_t>& after) {
    MOTLEY_RETURN_IF_ERROR(status_);
    if (key_ == "after") {
      MOTLEY_RETURN_IF_ERROR(line_.ParseList("after", value_, after));
      Advance();
    }
    if (!word_.empty()) return line_.Error(absl::StrCat("unexpected ", Quoted(word_)));
    return absl::OkStatus();
  }

 private:
  void Advance() {
    word_ = line_.Word();
    const size_t equals = word_.find('=');
    key_ = word_.substr(0, equals);
    value_ = equals == std::string::npos ? "" : word_.substr(equals + 1);
  }

  Line& line_;
  std::string word_, key_, value_;
  absl::Status status_;
};

std::optional<Operation> OperationNamed(const std::string& name) {
  for (const Operation& op : kEveryOperation) {
    if (name == OperationName(op)) return op;
  }
  return std::nullopt;
}

absl::Status ParseInstruction(Line& line, Program& program) {
  int64_t index = -1;
  MOTLEY_RETURN_IF_ERROR(line.Number("the instruction's index", index));
  const int64_t expected = static_cast<int64_t>(program.instructions.size());
  if (index != expected) return line.Error(absl::StrCat("expected instruction ", expected, ", got ", index));
  const std::string name = line.Word();
  const std::optional<Operation> op = OperationNamed(name);
  if (!op.has_value()) return line.Error(absl::StrCat(Quoted(name), " is no operation"));
  Instruction instruction{*op, {}};
  FieldParser fields(line);
  std::visit([&fields](auto& o) { program_fields::ForEachField(o, fields); }, instruction.op);
  MOTLEY_RETURN_IF_ERROR(fields.Finish(instruction.after));
  program.instructions.push_back(std::move(instruction));
  return absl::OkStatus();
}

absl::Status ParseHeader(Line& line, Program& program) {
  MOTLEY_RETURN_IF_ERROR(line.Expect("program"));
  MOTLEY_RETURN_IF_ERROR(line.Number("version", program.version));
  if (program.version != kProgramVersion) {
    return line.Error(absl::StrCat("version ", program.version, " is not known, this build reads ", kProgramVersion));
  }
  const std::string kind = line.Word();
  bool known = false;
  for (const auto& [value, name] : kKinds) {
    if (kind == name) {
      program.kind = value;
      known = true;
    }
  }
  if (!known) return line.Error(absl::StrCat("expected 'training' or 'evaluation', got ", Quoted(kind)));
  MOTLEY_RETURN_IF_ERROR(line.Expect("rank"));
  MOTLEY_RETURN_IF_ERROR(line.Number("rank", program.rank));
  MOTLEY_RETURN_IF_ERROR(line.Expect("of"));
  MOTLEY_RETURN_IF_ERROR(line.Number("world", program.world));
  MOTLEY_RETURN_IF_ERROR(line.Expect("units"));
  MOTLEY_RETURN_IF_ERROR(line.Number("units", program.num_units));
  MOTLEY_RETURN_IF_ERROR(line.Expect("microbatches"));
  MOTLEY_RETURN_IF_ERROR(line.List("microbatches", program.microbatches));
  return line.End();
}

template <typename T>
absl::Status ParseList(Line& line, const char* what, std::vector<T>& out) {
  MOTLEY_RETURN_IF_ERROR(line.Expect(what));
  MOTLEY_RETURN_IF_ERROR(line.List(what, out));
  return line.End();
}

absl::Status ParseGroups(Line& line, std::vector<std::vector<int32_t>>& groups) {
  MOTLEY_RETURN_IF_ERROR(line.Expect("groups"));
  std::string word = line.Word();
  if (word == "-") return line.End();
  do {
    if (word == "-") return line.Error("a group must name ranks, got '-'");
    MOTLEY_RETURN_IF_ERROR(line.ParseList("group", word, groups.emplace_back()));
    word = line.Word();
  } while (!word.empty());
  return absl::OkStatus();
}

constexpr int kHeaderLines = 5;
absl::Status ParseHeaderLine(int number, Line& line, Program& program) {
  switch (number) {
    case 0:
      return ParseHeader(line, program);
    case 1:
      return ParseList(line, "holds", program.units);
    case 2:
      return ParseGroups(line, program.groups);
    case 3:
      return ParseList(line, "parameters", program.parameter_buffers);
    default:
      return ParseList(line, "gradients", program.gradient_buffers);
  }
}

}  // namespace

std::string ToText(const Program& program) {
  std::string out =
      absl::StrCat("program ", program.version, " ", NameOf(kKinds, program.kind), " rank ", program.rank, " of ", program.world,
                   " units ", program.num_units, " microbatches ", ListToText(program.microbatches), "\nholds ",
                   ListToText(program.units), "\ngroups ", ListToText(program.groups, " "), "\nparameters ",
                   ListToText(program.parameter_buffers), "\ngradients ", ListToText(program.gradient_buffers), "\n");
  FieldPrinter printer(out);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    absl::StrAppend(&out, i, " ", std::string(OperationName(instruction.op)));
    std::visit([&printer](const auto& op) { program_fields::ForEachField(op, printer); }, instruction.op);
    if (!instruction.after.empty()) absl::StrAppend(&out, " after=", absl::StrJoin(instruction.after, ","));
    out += "\n";
  }
  return out;
}

absl::StatusOr<Program> ParseProgram(std::string_view text) {
  Program program;
  int number = 0, header_lines = 0;
  for (absl::string_view raw : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    raw = raw.substr(0, raw.find('#'));
    Line line(number, absl::StripAsciiWhitespace(raw));
    if (line.AtEnd()) continue;
    MOTLEY_RETURN_IF_ERROR(header_lines < kHeaderLines ? ParseHeaderLine(header_lines++, line, program)
                                                       : ParseInstruction(line, program));
  }
  if (header_lines < kHeaderLines) {
    return absl::InvalidArgumentError(absl::StrCat(
        "program text, line ", number, ": it ends before its five header lines (program, holds, groups, parameters, gradients)"));
  }
  return program;
}

}  // namespace motley
