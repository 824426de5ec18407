#include "coordinator/client/table.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"
#include "common/base/clean_text.h"

namespace motley::client {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kNarrowest = 6;       // that a column is cut to
constexpr size_t kNarrowestLast = 16;  // that the last one is cut to before others suffer: it has the longest texts

// A column of no width is left out, its gap too.
size_t Total(const std::vector<size_t>& widths) {
  const size_t sum = std::accumulate(widths.begin(), widths.end(), size_t{0});
  const auto shown = static_cast<size_t>(std::count_if(widths.begin(), widths.end(), [](size_t w) { return w > 0; }));
  return sum + (shown > 0 ? (shown - 1) * kGap : 0);
}

}  // namespace

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = CleanLine(cell);
  rows_.push_back(std::move(row));
}

Table& Table::Spare(std::vector<std::string> columns) {
  spare_ = std::move(columns);
  return *this;
}

std::vector<size_t> Table::Widths(const Screen& screen) const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  if (screen.width == 0) return widths;
  if (widths.size() < 2) return widths;
  size_t& last = widths.back();
  const auto excess = [&] {
    const size_t spared = last - std::min(last, kNarrowestLast);
    return Total(widths) > screen.width + spared;
  };
  for (const std::string& name : spare_) {
    if (!excess()) break;
    const auto column = std::find(rows_[0].begin(), rows_[0].end(), name);
    if (column != rows_[0].end()) widths[column - rows_[0].begin()] = 0;
  }
  while (Total(widths) > screen.width && last > kNarrowestLast) --last;
  while (Total(widths) > screen.width) {
    const auto widest = std::max_element(widths.begin() + 1, widths.end());
    if (*widest <= kNarrowest) break;
    --*widest;
  }
  return widths;
}

void Table::Print(std::ostream& out, const Screen& screen) const {
  const std::vector<size_t> widths = Widths(screen);
  for (const auto& row : rows_) {
    std::string line;
    size_t pending = 0;  // spaces that a further cell makes true
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0 && !rows_[0][i].empty()) continue;
      const std::string cell = Cut(row[i], widths[i]);
      if (!cell.empty()) {
        line.append(pending, ' ');
        pending = 0;
        const bool state = &row != &rows_[0] && absl::EndsWith(rows_[0][i], "STATE");
        line += state ? Painted(screen, row[i].substr(0, row[i].find(' ')), cell) : cell;
      }
      pending += widths[i] - Columns(cell) + kGap;
    }
    out << line << "\n";
  }
}

}  // namespace motley::client
