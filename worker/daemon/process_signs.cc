#include "worker/daemon/process_signs.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace motley::worker {

ProcessSigns SignsOf(pid_t pid) {
  ProcessSigns signs;
  std::string line, word;
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::getline(stat, line);
  // Its name stands in brackets and may hold any character. Fields are counted behind it: the state is the third of all.
  const size_t name_end = line.rfind(')');
  if (name_end == line.npos) return signs;
  std::istringstream fields(line.substr(name_end + 1));
  constexpr int kState = 3, kMajorFaults = 12, kUserTicks = 14, kSystemTicks = 15;
  for (int field = kState; field <= kSystemTicks && fields >> word; ++field) {
    if (field == kState) signs.state = word[0];
    if (field == kMajorFaults) signs.faults_from_disk = std::strtoll(word.c_str(), nullptr, 10);
    if (field == kUserTicks || field == kSystemTicks) signs.processor_ticks += std::strtoll(word.c_str(), nullptr, 10);
  }
  std::ifstream io(absl::StrCat("/proc/", pid, "/io"));
  for (int64_t bytes = 0; io >> word >> bytes;) {
    if (word == "rchar:") signs.bytes_read = bytes;
  }
  return signs;
}

bool Moved(const ProcessSigns& before, const ProcessSigns& after) {
  return before.processor_ticks != after.processor_ticks || before.faults_from_disk != after.faults_from_disk ||
         before.bytes_read != after.bytes_read;
}

}  // namespace motley::worker
