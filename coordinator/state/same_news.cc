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

// Takes the marks behind the word.
absl::string_view TakeMarks(absl::string_view* word) {
  const size_t end = word->find_last_not_of(",;:.%)") + 1;  // 0: there is nothing else
  const absl::string_view marks = word->substr(end);
  word->remove_suffix(marks.size());
  return marks;
}

bool IsSameWord(absl::string_view a, absl::string_view b) {
  if (a == b) return true;
  double number = 0;
  return TakeMarks(&a) == TakeMarks(&b) && absl::SimpleAtod(a, &number) && absl::SimpleAtod(b, &number);
}

}  // namespace

bool IsSameButNumbers(std::string_view a, std::string_view b) {
  const std::vector<absl::string_view> of_a = WordsOf(a), of_b = WordsOf(b);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), IsSameWord);
}

}  // namespace motley::coordinator
