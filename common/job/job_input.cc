#include "common/job/job_input.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr std::string_view kInputScheme = "input:", kHereScheme = "here:", kNodesScheme = "nodes:";
constexpr size_t kIdDigits = 64, kLongestInputName = 255;

}  // namespace

bool IsInputId(std::string_view text) {
  return text.size() == kIdDigits && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isxdigit(c) && !absl::ascii_isupper(c);
         });
}

bool IsInputName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestInputName && text != "." && text != ".." &&
         std::none_of(text.begin(), text.end(), [](unsigned char c) { return c == '/' || c < 0x20 || c == 0x7f; });
}

std::optional<JobInput> ParseInput(std::string_view path) {
  if (!path.starts_with(kInputScheme)) return std::nullopt;
  path.remove_prefix(kInputScheme.size());
  if (path.size() <= kIdDigits || path[kIdDigits] != '/') return std::nullopt;
  JobInput input{std::string(path.substr(0, kIdDigits)), std::string(path.substr(kIdDigits + 1))};
  if (!IsInputId(input.id) || !IsInputName(input.name)) return std::nullopt;
  return input;
}

std::string PathOf(const JobInput& input) { return absl::StrCat(std::string(kInputScheme), input.id, "/", input.name); }

std::optional<std::string> HerePath(std::string_view path) {
  if (!path.starts_with(kHereScheme)) return std::nullopt;
  return std::string(path.substr(kHereScheme.size()));
}

std::optional<std::string> NodesPath(std::string_view path) {
  if (!path.starts_with(kNodesScheme)) return std::nullopt;
  return std::string(path.substr(kNodesScheme.size()));
}

std::string PathHere(std::string_view path) { return absl::StrCat(std::string(kHereScheme), std::string(path)); }

std::vector<InputPath> InputPaths(JobConfig& config) {
  return {{"data.path", &config.data.path},
          {"data.validation_path", &config.data.validation_path},
          {kInitialKey, &config.checkpoint.initial}};
}

std::vector<JobInput> InputsOf(const JobConfig& config) {
  std::vector<JobInput> inputs;
  for (const std::string* path : {&config.data.path, &config.data.validation_path, &config.checkpoint.initial}) {
    const std::optional<JobInput> input = ParseInput(*path);
    const auto same = [&](const JobInput& each) { return each.id == input->id; };
    if (input && std::none_of(inputs.begin(), inputs.end(), same)) inputs.push_back(*input);
  }
  return inputs;
}

}  // namespace motley
