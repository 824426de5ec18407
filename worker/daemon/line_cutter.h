// Bytes as they come -> lines of bounded length. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace motley::worker {

class LineCutter {
 public:
  explicit LineCutter(size_t longest_bytes) : longest_bytes_(longest_bytes) {}

  // Whole lines, without their ends. What a line has beyond the longest is left out, with a mark that says how much.
  void Append(std::string_view bytes, std::vector<std::string>& lines);
  // The unfinished line at the end, if there is one.
  void End(std::vector<std::string>& lines);

 private:
  void TakeLine(std::vector<std::string>& lines);

  const size_t longest_bytes_;
  std::string line_;
  size_t cut_bytes_ = 0;
};

}  // namespace motley::worker
