#include "worker/kernel_compiler/assembler_log.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace motley::kernel_compiler {
namespace {

constexpr int kMostSharedBytes = 48 << 10;

// The number before `words` in a line: 30 of "Used 30 registers". 0: the line does not have them.
int NumberBefore(const std::string& line, const char* words) {
  const size_t at = line.find(words);
  if (at == std::string::npos) return 0;
  const std::string before = line.substr(0, at);
  const size_t begin = before.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  int number = 0;
  return absl::SimpleAtoi(before.substr(begin), &number) ? number : 0;
}

}  // namespace

std::vector<KernelUse> UsesIn(const std::string& log) {
  std::vector<KernelUse> uses;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(log, '\n'))) {
    if (line.find("Compiling entry function '") != std::string::npos) {
      const std::vector<std::string> parts = absl::StrSplit(line, '\'');
      uses.push_back({.symbol = parts[1]});
    }
    if (uses.empty()) continue;
    KernelUse& use = uses.back();
    use.stack_bytes += NumberBefore(line, " bytes stack frame");
    use.spill_bytes += NumberBefore(line, " bytes spill stores") + NumberBefore(line, " bytes spill loads");
    use.registers += NumberBefore(line, " registers");
    use.shared_bytes += NumberBefore(line, " bytes smem");
  }
  return uses;
}

std::vector<std::string> Faults(const std::vector<KernelUse>& uses) {
  std::vector<std::string> faults;
  for (const KernelUse& use : uses) {
    if (use.registers == 0) faults.push_back(absl::StrCat(use.symbol, ": the log does not say its registers"));
    if (use.stack_bytes > 0) faults.push_back(absl::StrCat(use.symbol, " has ", use.stack_bytes, " bytes of stack"));
    if (use.spill_bytes > 0) faults.push_back(absl::StrCat(use.symbol, " spills ", use.spill_bytes, " bytes of registers"));
    if (use.shared_bytes > kMostSharedBytes)
      faults.push_back(absl::StrCat(use.symbol, " has ", use.shared_bytes, " bytes of shared memory"));
  }
  return faults;
}

}  // namespace motley::kernel_compiler
