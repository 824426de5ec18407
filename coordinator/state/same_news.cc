#include "coordinator/state/same_news.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace motley::coordinator {
namespace {

std::vector<absl::string_view> WordsOf(std::string_view text) {
  return absl::StrSplit(absl::string_view(text.data(), text.size()), ' ');
}

// Takes a mark behind the word.
char TakeMark(absl::string_view* word) {
  constexpr absl::string_view kMarks = ",;:.%";
  if (word->empty() || kMarks.find(word->back()) == absl::string_view::npos) return 0;
  const char mark = word->back();
  word->remove_suffix(1);
  return mark;
}

bool IsSameWord(absl::string_view a, absl::string_view b) {
  if (a == b) return true;
  double number = 0;
  return TakeMark(&a) == TakeMark(&b) && absl::SimpleAtod(a, &number) && absl::SimpleAtod(b, &number);
}

}  // namespace

bool IsSameButNumbers(std::string_view a, std::string_view b) {
  const std::vector<absl::string_view> of_a = WordsOf(a), of_b = WordsOf(b);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), IsSameWord);
}

}  // namespace motley::coordinator
