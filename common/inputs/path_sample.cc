#include "common/inputs/path_sample.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/weights/weights_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

struct FoundFile {
  std::string name;  // beneath the folder; empty: the file itself
  int64_t bytes = 0;
};

// By name, so that two machines have the same order.
absl::StatusOr<std::vector<FoundFile>> FindFiles(const FileDescriptor& opened, const std::string& path) {
  struct stat found {};
  if (::fstat(opened.get(), &found) != 0) return FileError(errno, "look at", path);
  if (S_ISREG(found.st_mode)) return std::vector<FoundFile>{{"", found.st_size}};
  std::vector<FoundFile> files;
  // Ends with a slash, so that it is what it leads to.
  const fs::path folder = absl::StrCat("/proc/self/fd/", opened.get(), "/");
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(folder).string();
    struct stat at {};
    if (::lstat(entry->path().c_str(), &at) == 0 && S_ISREG(at.st_mode)) files.push_back({name, at.st_size});
  }
  if (error) return FileError(error.value(), "list", path);
  std::sort(files.begin(), files.end(), [](const FoundFile& a, const FoundFile& b) { return a.name < b.name; });
  return files;
}

int64_t CountBlocks(int64_t bytes) { return (bytes + kCheckpointBlockBytes - 1) / kCheckpointBlockBytes; }

absl::StatusOr<std::string> DigestOfBlock(const FileDescriptor& opened, const std::string& path, int64_t file_bytes,
                                          int64_t block) {
  const int64_t begin = block * kCheckpointBlockBytes, end = std::min(file_bytes, begin + kCheckpointBlockBytes);
  std::string bytes(static_cast<size_t>(std::max<int64_t>(end - begin, 0)), '\0');
  MOTLEY_RETURN_IF_ERROR(ReadAt(opened, path, begin, bytes.data(), static_cast<int64_t>(bytes.size())));
  return Sha256Hex(bytes);
}

std::string PathOfFile(const std::string& path, const std::string& file) {
  return file.empty() ? path : absl::StrCat(path, "/", file);
}

int64_t SumOf(const std::vector<FoundFile>& files) {
  int64_t sum = 0;
  for (const FoundFile& file : files) sum += file.bytes;
  return sum;
}

}  // namespace

absl::StatusOr<PathSample> SamplePath(const std::string& path, int blocks, const std::function<uint64_t(uint64_t)>& draw) {
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor opened, OpenAnywhere(path));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<FoundFile> files, FindFiles(opened, path));
  PathSample sample{static_cast<int64_t>(files.size()), SumOf(files), {}};
  int64_t all = 0;
  for (const FoundFile& file : files) all += CountBlocks(file.bytes);
  for (int b = 0; b < blocks && all > 0; ++b) {
    auto block = static_cast<int64_t>(draw(static_cast<uint64_t>(all)));
    size_t f = 0;
    for (; block >= CountBlocks(files[f].bytes); ++f) block -= CountBlocks(files[f].bytes);
    const std::string place = PathOfFile(path, files[f].name);
    MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor file, OpenForRead(place));
    MOTLEY_ASSIGN_OR_RETURN(std::string digest, DigestOfBlock(file, place, files[f].bytes, block));
    sample.blocks.push_back({files[f].name, files[f].bytes, block, std::move(digest)});
  }
  return sample;
}

absl::StatusOr<Sampled> CompareWithSample(const std::string& path, const PathSample& sample,
                                          const std::function<absl::StatusOr<FileDescriptor>(const std::string&)>& open) {
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor opened, open(path));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<FoundFile> files, FindFiles(opened, path));
  if (static_cast<int64_t>(files.size()) != sample.files || SumOf(files) != sample.bytes) return Sampled::kOther;
  for (const SampledBlock& block : sample.blocks) {
    const auto found = std::find_if(files.begin(), files.end(), [&](const FoundFile& file) { return file.name == block.file; });
    const bool same =
        found != files.end() && found->bytes == block.file_bytes && block.block >= 0 && block.block < CountBlocks(found->bytes);
    if (!same) return Sampled::kOther;
    const std::string place = PathOfFile(path, block.file);
    MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor file, open(place));
    MOTLEY_ASSIGN_OR_RETURN(const std::string digest, DigestOfBlock(file, place, found->bytes, block.block));
    if (digest != block.sha256) return Sampled::kOther;
  }
  return Sampled::kSame;
}

}  // namespace motley
