// One row of what an examination says, for people.
#pragma once

#include <string>
#include <vector>

#include "common/base/ids.h"

namespace motley::coordinator {

enum class FindingState { kOk, kWarning, kWrong, kLeftOut };

struct Finding {
  FindingState state = FindingState::kOk;
  std::string what;  // "node b", "ports", "links", "clocks", "data", "folder"
  std::string text;  // with what to do, where something is not well
};

// Rows of one kind that are told apart.
inline constexpr size_t kMostFindings = 16;
// Appends the first few; one more row, of this name, says how many the others are. All have one state.
void AppendSome(std::vector<Finding> some, const std::string& what, std::vector<Finding>* all);
// "a, b, c": the first few names, and how many the others are.
std::string SomeNames(const std::vector<NodeName>& nodes);

}  // namespace motley::coordinator
