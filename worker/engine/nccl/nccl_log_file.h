// Where NCCL's log goes that is read and not shown: memory of the process, so that nobody has to remove a file.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/files.h"
#include "worker/engine/nccl/nccl_log.h"

namespace motley::engine {

// NCCL writes it from its own threads; read from one at a time.
class NcclLogFile {
 public:
  // What NCCL logs later than this many bytes is lost.
  static constexpr size_t kMostBytes = 8 << 20;

  // Before the process's first use of NCCL: sets NCCL_DEBUG and what belongs to it. Null: the user has set NCCL_DEBUG and wants
  // the log himself, or there is no such memory.
  static std::unique_ptr<NcclLogFile> Open();
  // What has come since the last call.
  std::string TakeNew();
  // What that says of the communicator that was made and first used meanwhile; none: nothing.
  std::optional<NcclLinks> NewLinks(bool is_pair) { return log_.LinksOf(TakeNew(), is_pair); }

 private:
  explicit NcclLogFile(FileDescriptor file) : file_(std::move(file)) {}

  const FileDescriptor file_;
  NcclLog log_;
  size_t taken_ = 0;
  bool is_bounded_ = false;
};

}  // namespace motley::engine
