// What a child of the worker is given of the worker's environment: what a rank needs, by name, and nothing else (a daemon's
// environment may hold secrets, and a stray variable should not change how a job computes).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace motley::worker {

// "NAME=value" texts of a null-terminated list, and `variables`, which replace those of their names.
std::vector<std::string> ChildEnvironment(const char* const* environment, const std::vector<std::string>& variables = {});

bool IsGivenToChildren(std::string_view name);

}  // namespace motley::worker
