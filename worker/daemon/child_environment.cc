#include "worker/daemon/child_environment.h"

#include <algorithm>
#include <iterator>

namespace motley::worker {
namespace {

constexpr std::string_view kNames[] = {
    "PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"};
constexpr std::string_view kPrefixes[] = {"LC_", "OMP_", "MKL_", "CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "MOTLEY_"};

}  // namespace

bool IsGivenToChildren(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<std::string> ChildEnvironment(const char* const* environment, const std::vector<std::string>& variables) {
  std::vector<std::string> given = variables;
  const auto is_replaced = [&](std::string_view name) {
    return std::any_of(variables.begin(), variables.end(),
                       [&](std::string_view variable) { return variable.substr(0, variable.find('=')) == name; });
  };
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment), name = entry.substr(0, entry.find('='));
    if (IsGivenToChildren(name) && !is_replaced(name)) given.emplace_back(entry);
  }
  return given;
}

}  // namespace motley::worker
