// What the owner of profiles should know of them: files and entries that decide nothing.
#pragma once

#include <string>
#include <vector>

#include "planner/costs/latency_book.h"
#include "planner/setting/setting.h"

namespace motley::client {

// `paths` are of --profile, `book` is what they hold; null without any.
std::vector<std::string> ProfileWarnings(const std::vector<std::string>& paths, const planner::Setting& setting,
                                         const planner::LatencyBook* book);

}  // namespace motley::client
