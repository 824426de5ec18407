#include "worker/daemon/line_cutter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::worker {

void LineCutter::Append(std::string_view bytes, std::vector<std::string>& lines) {
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const size_t kept = std::min(end, longest_bytes_ - line_.size());
    line_.append(bytes.substr(0, kept));
    cut_bytes_ += end - kept;
    if (end == bytes.size()) return;
    TakeLine(lines);
    bytes.remove_prefix(end + 1);
  }
}

void LineCutter::End(std::vector<std::string>& lines) {
  if (!line_.empty()) TakeLine(lines);
}

void LineCutter::TakeLine(std::vector<std::string>& lines) {
  if (cut_bytes_ > 0) absl::StrAppend(&line_, " [... ", cut_bytes_, " bytes cut]");
  lines.push_back(std::exchange(line_, ""));
  cut_bytes_ = 0;
}

}  // namespace motley::worker
