// Whether a path means the same on two machines, without reading all of it: how many files and bytes, and the SHA-256 of a few
// blocks of 4 MiB. docs/inside/inputs.md
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley {

struct SampledBlock {
  std::string file;  // beneath the folder; empty: the file itself
  int64_t file_bytes = 0;
  int64_t block = 0;
  std::string sha256;
};
// Of a file, or of a folder with all files beneath it; links beneath it are passed over.
struct PathSample {
  int64_t files = 0, bytes = 0;
  std::vector<SampledBlock> blocks;
};

// What there is beside a sample.
enum class Sampled { kNotLooked, kAbsent, kSame, kOther };

// `blocks` of them, drawn by `draw`, which gives a number below its argument. NOT_FOUND, PERMISSION_DENIED and others of the file
// system.
absl::StatusOr<PathSample> SamplePath(const std::string& path, int blocks, const std::function<uint64_t(uint64_t)>& draw);

// What lies at `path`, by `open`, which opens a file or folder for reading. Errors: those of `open` for the path, where nothing
// is there.
absl::StatusOr<Sampled> CompareWithSample(const std::string& path, const PathSample& sample,
                                          const std::function<absl::StatusOr<FileDescriptor>(const std::string&)>& open);

}  // namespace motley
