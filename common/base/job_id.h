// What a job may be called: it is a part of paths and labels.
#pragma once

#include <algorithm>
#include <string_view>

namespace motley {

// 1 to 63 of a-z, 0-9 and '-'. With a hyphen first, commands would take it for a flag.
inline bool IsJobId(std::string_view id) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !id.empty() && id.size() <= 63 && id[0] != '-' && std::all_of(id.begin(), id.end(), good);
}

}  // namespace motley
