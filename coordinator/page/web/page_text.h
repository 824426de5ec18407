// The page for browsers, as it is embedded: one document with its script and style, which asks nobody but the coordinator.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
namespace motley::coordinator {

// The page that the coordinator serves.
std::string PageHtml();
// The same with what it shows (PrintPage's JSON, by topic) instead of asking for it; it may not ask anybody.
std::string ReportHtml(absl::string_view job, absl::string_view data_json);
// Content-Security-Policy of the page: its own script and style by their digests, and its own coordinator to ask.
const std::string& PagePolicy();
// Of everything in it: tells a page that its coordinator has another one.
const std::string& PageDigest();

}  // namespace motley::coordinator
