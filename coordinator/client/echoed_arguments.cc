#include "coordinator/client/echoed_arguments.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/clean_text.h"

namespace motley::client {
namespace {

// The argument, and what a parser takes out of it: "--out=x", "training.steps=x", "-ox".
std::vector<std::string_view> PartsOf(std::string_view argument) {
  std::vector<std::string_view> parts = {argument};
  if (const size_t equals = argument.find('='); equals != std::string_view::npos) {
    parts.push_back(argument.substr(0, equals));
    parts.push_back(argument.substr(equals + 1));
  }
  if (argument.size() > 2 && argument[0] == '-') parts.push_back(argument.substr(2));
  return parts;
}

}  // namespace

std::string WithShortArguments(const std::string& message, const std::vector<std::string>& arguments) {
  std::vector<std::pair<std::string, std::string>> cuts;  // StrReplaceAll takes the longest that fits
  for (const std::string& argument : arguments) {
    for (const std::string_view part : PartsOf(argument)) {
      if (part.size() <= kMostEchoedBytes) continue;
      cuts.emplace_back(part, Echo(part));
      if (std::string clean = CleanLine(part); clean != part) cuts.emplace_back(std::move(clean), Echo(part));
    }
  }
  return cuts.empty() ? message : absl::StrReplaceAll(message, cuts);
}

}  // namespace motley::client
