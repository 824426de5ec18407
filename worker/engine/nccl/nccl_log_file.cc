#include "worker/engine/nccl/nccl_log_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::engine {

std::unique_ptr<NcclLogFile> NcclLogFile::Open() {
  const char* const wanted = std::getenv("NCCL_DEBUG");
  if (wanted != nullptr && *wanted != '\0') return nullptr;
  FileDescriptor file(memfd_create("nccl-log", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) return nullptr;
  setenv("NCCL_DEBUG", "INFO", /*overwrite=*/1);
  setenv("NCCL_DEBUG_SUBSYS", "INIT,NET,GRAPH", /*overwrite=*/1);
  setenv("NCCL_DEBUG_FILE", absl::StrCat("/proc/self/fd/", file.get()).c_str(), /*overwrite=*/1);
  return std::unique_ptr<NcclLogFile>(new NcclLogFile(std::move(file)));
}

std::string NcclLogFile::TakeNew() {
  std::string text;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = pread(file_.get(), buffer, sizeof(buffer), static_cast<off_t>(taken_ + text.size()))) > 0) {
    const std::string_view piece(buffer, static_cast<size_t>(n));
    text.append(piece.substr(0, piece.find('\0')));  // behind what is written it is empty up to its bound
    if (piece.find('\0') != std::string_view::npos) break;
  }
  // NCCL empties the file when it opens it, and has by its first line.
  if (!text.empty() && !std::exchange(is_bounded_, true) && ftruncate(file_.get(), kMostBytes) == 0)
    fcntl(file_.get(), F_ADD_SEALS, F_SEAL_GROW);
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(taken_ + text.size()));
  taken_ += text.size();
  return text;
}

}  // namespace motley::engine
