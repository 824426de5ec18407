// Pages of a list: what comes after a token, bounded by number and by bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace motley::coordinator {

inline constexpr int kMostInPage = 1000;
inline constexpr size_t kPageBytes = 1 << 20;

// Adds `rows`, pairs of a key and a record in ascending order of their unique keys, to a response. `size` 0 is kMostInPage, more
// is cut to it; `token` is empty or what the page before returned. `add(record)` returns the bytes that the record took. Returns
// the token of the next page, empty when this was the last. INVALID_ARGUMENT: a negative size.
template <typename Record, typename Add>
absl::StatusOr<std::string> AddPage(const std::vector<std::pair<std::string, const Record*>>& rows, int size,
                                    const std::string& token, Add add) {
  if (size < 0) return absl::InvalidArgumentError(absl::StrCat("page_size must be from 0 to ", kMostInPage, ", got ", size));
  const size_t most = size == 0 ? kMostInPage : std::min(size, kMostInPage);
  auto row = std::upper_bound(rows.begin(), rows.end(), token, [](const std::string& t, const auto& r) { return t < r.first; });
  if (token.empty()) row = rows.begin();
  size_t added = 0, bytes = 0;
  for (; row != rows.end() && added < most && (added == 0 || bytes < kPageBytes); ++row, ++added) bytes += add(*row->second);
  return row == rows.end() ? std::string() : std::prev(row)->first;
}

}  // namespace motley::coordinator
