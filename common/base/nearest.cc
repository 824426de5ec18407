#include "common/base/nearest.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"

namespace motley {
namespace {

// Letters added, left out, replaced, and two neighbours exchanged.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  const auto same = [&](size_t i, size_t j) { return absl::ascii_tolower(a[i]) == absl::ascii_tolower(b[j]); };
  for (size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = rows[i - 1][j - 1] + (same(i - 1, j - 1) ? 0 : 1);
      rows[i][j] = std::min({replaced, rows[i - 1][j] + 1, rows[i][j - 1] + 1});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

std::string NearestWord(std::string_view word, const std::vector<std::string>& known) {
  // A word this long is no typing error, and the distance takes the product of the lengths.
  if (word.size() > 256) return "";
  std::string best;
  size_t best_distance = 0, best_prefix = 0;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(word, candidate);
    if (2 * distance > std::max(word.size(), candidate.size())) continue;
    const size_t prefix = CommonPrefix(word, candidate);
    if (best.empty() || distance < best_distance || (distance == best_distance && prefix > best_prefix)) {
      best = candidate;
      best_distance = distance;
      best_prefix = prefix;
    }
  }
  return best;
}

}  // namespace motley
