#include "common/nearest.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"

namespace motley {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = absl::ascii_tolower(a[i - 1]) == absl::ascii_tolower(b[j - 1]);
      const size_t replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
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
