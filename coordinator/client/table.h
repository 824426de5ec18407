// A listing for people: left-aligned columns as wide as their widest cell, cut at the screen's width.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "coordinator/client/screen.h"

namespace motley::client {

// What came from elsewhere neither makes rows nor steers the terminal.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void Add(std::vector<std::string> row);
  // Columns that are left out, the first named first, where the screen has no room for all.
  Table& Spare(std::vector<std::string> columns);
  // On a screen that is too narrow the last column is cut, then the widest; the first one, which names the row, is not. Cells of
  // columns whose name ends with STATE have the state's colour.
  void Print(std::ostream& out, const Screen& screen = {}) const;

 private:
  std::vector<size_t> Widths(const Screen& screen) const;

  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> spare_;
};

}  // namespace motley::client
