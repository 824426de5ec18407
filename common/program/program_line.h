// A line of a program's text (program_text.cc), as it is read. Not thread-safe: of one reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "common/program/program.h"

namespace motley {

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
  // "65536", "65536x3", "65536:3", "65536:3-5" or "65536/3/0"
  absl::Status ParseNumber(const std::string& what, const std::string& word, UnitBuffer& out) const {
    if (const std::vector<std::string> shard = absl::StrSplit(word, '/'); shard.size() == 3) {
      MOTLEY_RETURN_IF_ERROR(ParseNumber(what, shard[0], out.elements));
      MOTLEY_RETURN_IF_ERROR(ParseNumber(what, shard[1], out.home_of));
      return ParseNumber(what, shard[2], out.shard_group);
    }
    const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits(absl::ByAnyChar(":x"), 1));
    MOTLEY_RETURN_IF_ERROR(ParseNumber(what, parts[0], out.elements));
    if (parts.size() == 1) return absl::OkStatus();
    if (word[parts[0].size()] == 'x') {
      MOTLEY_RETURN_IF_ERROR(ParseNumber(what, parts[1], out.num_units));
      return out.num_units == 1 ? Error(absl::StrCat(what, " must not say x1")) : absl::OkStatus();
    }
    int32_t more = 0;
    MOTLEY_RETURN_IF_ERROR(ParseSpan(what, parts[1], out.home_of, more));
    out.num_units = more + 1;
    return absl::OkStatus();
  }
  // "3" or "3-5"
  absl::Status ParseSpan(const std::string& what, const std::string& word, int32_t& first, int32_t& more) const {
    const size_t dash = word.find('-', 1);
    more = 0;
    if (dash == std::string::npos) return ParseNumber(what, word, first);
    int32_t last = 0;
    MOTLEY_RETURN_IF_ERROR(ParseNumber(what, word.substr(0, dash), first));
    MOTLEY_RETURN_IF_ERROR(ParseNumber(what, word.substr(dash + 1), last));
    if (first < 0 || last <= first || last == std::numeric_limits<int32_t>::max()) {
      return Error(absl::StrCat(what, " must be an integer or a range that ascends from 0 or more, got ", Quoted(word)));
    }
    more = last - first;
    return absl::OkStatus();
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

}  // namespace motley
