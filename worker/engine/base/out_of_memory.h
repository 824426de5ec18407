// An allocation on the device that failed, as an error.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/memory_shortage.h"

namespace motley::engine {

// RESOURCE_EXHAUSTED: "WHERE: what torch says"; of Fault::kMemory where that is the device's memory. What it held is added where
// the rank's run ends (engine.cc), which knows it for all of them.
inline absl::Status OutOfMemory(const std::string& where, const c10::Error& error) {
  absl::Status status = absl::ResourceExhaustedError(absl::StrCat(where, ": ", error.what_without_backtrace()));
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) == nullptr) return status;
  return WithMemoryShortage(std::move(status), {.where = where});
}

}  // namespace motley::engine
