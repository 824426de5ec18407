// The text form of a program. Grammar and example: docs/inside/program.md.
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "common/model/operators.h"
#include "common/program/program.h"
#include "common/program/program_fields.h"
#include "common/program/program_header.h"
#include "common/program/program_line.h"

namespace motley {
namespace {

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
std::string Text(int64_t value) { return absl::StrCat(value); }
std::string Text(const Microbatch& m) { return absl::StrCat(m.samples, "@", m.first); }
std::string SpanText(int64_t first, int64_t more) {
  return more == 0 ? absl::StrCat(first) : absl::StrCat(first, "-", first + more);
}
std::string Text(const UnitBuffer& b) {
  if (b.IsShard()) return absl::StrCat(b.elements, "/", b.home_of, "/", b.shard_group);
  if (b.home_of != -1) return absl::StrCat(b.elements, ":", SpanText(b.home_of, b.num_units - 1));
  return b.num_units == 1 ? absl::StrCat(b.elements) : absl::StrCat(b.elements, "x", b.num_units);
}
std::string Text(const std::vector<int32_t>& list) { return absl::StrJoin(list, ","); }

template <typename T>
std::string ListToText(const std::vector<T>& list, const char* separator = ",") {
  if (list.empty()) return "-";
  return absl::StrJoin(list, separator, [](std::string* out, const T& item) { out->append(Text(item)); });
}

std::string OffloadsToText(const OffloadKinds& kinds) { return kinds.any() ? absl::StrJoin(WordsOf(kinds), ",") : "-"; }

class FieldPrinter {
 public:
  explicit FieldPrinter(std::string& out) : out_(out) {}
  void Field(const char* key, int32_t value) { absl::StrAppend(&out_, " ", key, "=", value); }
  void Optional(const char* key, int32_t value) {
    if (value != -1) Field(key, value);
  }
  void Span(const char* key, int32_t first, int32_t more) { absl::StrAppend(&out_, " ", key, "=", SpanText(first, more)); }
  void OptionalSpan(const char* key, int32_t first, int32_t more) {
    if (first != -1) Span(key, first, more);
  }
  void Elements(const char* key, const ArrayRange& range) {
    if (!range.whole()) absl::StrAppend(&out_, " ", key, "=", range.count, "@", range.first);
  }
  void Operators(const char* key, uint32_t operators) {
    const char* separator = "=";
    for (int i = 0; i < kNumOps; ++i) {
      if ((operators >> i & 1) == 0) continue;
      absl::StrAppend(&out_, *separator == '=' ? " " : "", *separator == '=' ? key : "", separator,
                      std::string(OpName(static_cast<Op>(i))));
      separator = ",";
    }
  }
  template <typename Choice>
  void Word(const char* key, Choice choice) {
    const std::string_view word = WordsOf(choice)[static_cast<size_t>(choice)];
    if (!word.empty()) absl::StrAppend(&out_, " ", key, "=", std::string(word));
  }

 private:
  std::string& out_;
};

// ---- parsing ----

// Reads the "key=value" words in the order in which the printer writes them; keeps the first error.
class FieldParser {
 public:
  explicit FieldParser(Line& line) : line_(line) { Advance(); }

  void Field(const char* key, int32_t& value) {
    if (Has(key)) Read(line_.ParseNumber(key, value_, value));
  }
  void Optional(const char* key, int32_t& value) {
    value = -1;
    if (key_ == key) Field(key, value);
  }
  void Span(const char* key, int32_t& first, int32_t& more) {
    more = 0;
    if (Has(key)) Read(line_.ParseSpan(key, value_, first, more));
  }
  void OptionalSpan(const char* key, int32_t& first, int32_t& more) {
    first = -1;
    more = 0;
    if (key_ == key) Span(key, first, more);
  }
  // "24640@0"
  void Elements(const char* key, ArrayRange& range) {
    range = {};
    if (key_ != key || !status_.ok()) return;
    Microbatch part;  // of the same form
    const absl::Status status = line_.ParseNumber(key, value_, part);
    range = {part.first, part.samples};
    if (status.ok() && (range.count < 1 || range.first < 0 || range.first > std::numeric_limits<int64_t>::max() - range.count)) {
      return Read(line_.Error(absl::StrCat(key, " must be at least 1, from 0 on, got ", Quoted(value_))));
    }
    Read(status);
  }
  void Operators(const char* key, uint32_t& operators) {
    operators = 0;
    if (key_ != key || !status_.ok()) return;
    for (const absl::string_view name : absl::StrSplit(value_, ',')) {
      int op = 0;
      while (op < kNumOps && std::string(OpName(static_cast<Op>(op))) != name) ++op;
      if (op == kNumOps || operators >> op != 0) {
        return Read(line_.Error(absl::StrCat(key, " must name operators in their order, got ", Quoted(value_))));
      }
      operators |= uint32_t{1} << op;
    }
    Advance();
  }
  template <typename Choice>
  void Word(const char* key, Choice& choice) {
    const auto words = WordsOf(choice);
    choice = Choice{};
    if (!status_.ok() || (words[0].empty() && key_ != key)) return;
    for (size_t i = 0; i < words.size(); ++i) {
      if (key_ != key || value_ != words[i] || value_.empty()) continue;
      choice = static_cast<Choice>(i);
      return Advance();
    }
    const std::string all = absl::StrJoin(
        words, ", ", [key](std::string* out, std::string_view word) { absl::StrAppend(out, key, "=", std::string(word)); });
    status_ =
        line_.Error(absl::StrCat("expected ", words[0].empty() ? all.substr(all.find(' ') + 1) : all, ", got ", Quoted(word_)));
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
  bool Has(const char* key) {
    if (status_.ok() && key_ != key) status_ = line_.Error(absl::StrCat("expected '", key, "=...', got ", Quoted(word_)));
    return status_.ok();
  }
  void Read(absl::Status status) {
    status_ = std::move(status);
    Advance();
  }
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
    return line.Error(UnknownVersion(program.version));
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
  if (!line.AtEnd()) {
    MOTLEY_RETURN_IF_ERROR(line.Expect("head_rows"));
    MOTLEY_RETURN_IF_ERROR(line.Number("head_rows", program.head_rows));
  }
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

absl::Status ParseOffloads(Line& line, OffloadKinds& offloads) {
  MOTLEY_RETURN_IF_ERROR(line.Expect("offloads"));
  const std::string word = line.Word();
  const absl::StatusOr<OffloadKinds> kinds = word == "-" ? OffloadKinds::None() : ParseOffload(word);
  if (!kinds.ok() || OffloadsToText(*kinds) != word) {
    return line.Error(
        absl::StrCat("expected '-' or of activations,parameters,gradients,optimizer some in this order, got ", Quoted(word)));
  }
  offloads = *kinds;
  return line.End();
}

constexpr int kHeaderLines = 7;
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
    case 4:
      return ParseList(line, "gradients", program.gradient_buffers);
    case 5:
      return ParseOffloads(line, program.offloads);
    default:
      return ParseList(line, "slots", program.slots);
  }
}

}  // namespace

std::string ToText(const Program& program) {
  std::string out =
      absl::StrCat("program ", program.version, " ", NameOf(kKinds, program.kind), " rank ", program.rank, " of ", program.world,
                   " units ", program.num_units, " microbatches ", ListToText(program.microbatches),
                   program.head_rows == kHeadChunkTokens ? "" : absl::StrCat(" head_rows ", program.head_rows), "\nholds ",
                   ListToText(program.units), "\ngroups ", ListToText(program.groups, " "), "\nparameters ",
                   ListToText(program.parameter_buffers), "\ngradients ", ListToText(program.gradient_buffers), "\noffloads ",
                   OffloadsToText(program.offloads), "\nslots ", ListToText(program.slots), "\n");
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
    return absl::InvalidArgumentError(
        absl::StrCat("program text, line ", number,
                     ": it ends before its seven header lines (program, holds, groups, parameters, gradients, offloads, slots)"));
  }
  return program;
}

}  // namespace motley
