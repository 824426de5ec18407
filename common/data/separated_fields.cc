#include "common/data/separated_fields.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"

namespace motley {
namespace {

constexpr int kMostRecords = 200;
constexpr int kFewestRecords = 4;
// One line in so many may be odd: free text in a field has its smileys. Of code every line is.
constexpr int kRecordsForEachOddOne = 4;

struct Separator {
  char letter;
  bool quotes;          // a field in quotes may hold separators and line ends
  bool stands_closely;  // prose has a blank beside it
};
constexpr Separator kSeparators[] = {{'\t', false, false}, {',', true, true}, {';', true, true}, {'|', false, true}};

struct Record {
  int fields = 0;
  bool odd = false;          // a field of it looks like a part of a sentence, or of code
  bool empty_field = false;  // one at least
  bool empty_first = false;
};

bool IsBlank(char c) { return absl::ascii_isblank(static_cast<unsigned char>(c)); }

bool BracketsFit(std::string_view field) {
  int open = 0;
  for (const char c : field) {
    if (c == '(' || c == '[' || c == '{') ++open;
    if (c == ')' || c == ']' || c == '}') --open;
    if (open < 0) return false;
  }
  return open == 0;
}

// Walks a text's records; nothing at its end, where it breaks off, or where its quotes fit no table.
class Records {
 public:
  Records(std::string_view text, bool whole, const Separator& separator) : rest_(text), whole_(whole), separator_(separator) {}

  std::optional<Record> Next() {
    while (!rest_.empty() && (rest_.front() == '\n' || rest_.front() == '\r')) rest_.remove_prefix(1);
    if (rest_.empty()) return std::nullopt;
    Record record;
    while (true) {
      const bool quoted = separator_.quotes && rest_.starts_with('"');
      if (!(quoted ? TakeQuoted() : TakePlain(&record))) return std::nullopt;
      ++record.fields;
      if (!rest_.starts_with(separator_.letter)) break;
      rest_.remove_prefix(1);
    }
    if (rest_.starts_with('\r')) rest_.remove_prefix(1);
    if (rest_.empty() && !whole_) return std::nullopt;
    return record;
  }
  bool broken() const { return broken_; }

 private:
  bool TakeQuoted() {
    size_t at = 1;
    for (; at < rest_.size(); ++at) {
      if (rest_[at] == '\\') {
        ++at;
      } else if (rest_[at] == '"') {
        if (at + 1 >= rest_.size() || rest_[at + 1] != '"') break;
        ++at;
      }
    }
    const bool cut = at >= rest_.size();
    rest_.remove_prefix(std::min(at + 1, rest_.size()));
    const bool ends =
        rest_.empty() || rest_.starts_with(separator_.letter) || rest_.starts_with('\n') || rest_.starts_with("\r\n");
    broken_ = broken_ || (cut ? whole_ : !ends);
    return !cut && ends;
  }
  bool TakePlain(Record* record) {
    const char ends[] = {separator_.letter, '\n', '\0'};
    std::string_view field = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(field.size());
    if (field.ends_with('\r')) field.remove_suffix(1);
    record->empty_field |= field.empty();
    record->empty_first |= field.empty() && record->fields == 0;
    const bool blanks = separator_.stands_closely && !field.empty() && (IsBlank(field.front()) || IsBlank(field.back()));
    record->odd |= blanks || !BracketsFit(field);
    return true;
  }

  std::string_view rest_;
  const bool whole_;
  const Separator& separator_;
  bool broken_ = false;
};

bool IsTable(std::string_view text, bool whole, const Separator& separator) {
  Records records(text, whole, separator);
  int found = 0, odd = 0, fields = 0;
  while (found < kMostRecords) {
    const std::optional<Record> record = records.Next();
    if (!record) break;
    if (found == 0) fields = record->fields;
    // Of the first line every field has a name or a value; a line of code may begin with tabs.
    if (record->fields < 2 || record->fields != fields || (found == 0 && record->empty_field)) return false;
    if (!separator.stands_closely && record->empty_first) return false;
    odd += record->odd ? 1 : 0;
    ++found;
  }
  return !records.broken() && found >= kFewestRecords && odd * kRecordsForEachOddOne <= found;
}

}  // namespace

bool HoldsSeparatedFields(std::string_view text, bool whole) {
  for (const Separator& separator : kSeparators) {
    if (IsTable(text, whole, separator)) return true;
  }
  return false;
}

}  // namespace motley
