// What the fuzz targets share. A target is one parser: whatever bytes come, it answers with a value or a Status, in bounded time
// and memory; and what it took is written and read back as the same. docs/inside/fuzzing.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace motley::fuzz {

inline std::string_view Text(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// Ends the process, which is what a finding is.
inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

}  // namespace motley::fuzz
