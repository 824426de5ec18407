#include "common/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_blocks.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/old_order.h"

namespace motley {
namespace {

// What the coordinator saw there is not seen here: a mount that is gone, or a folder that has been replaced.
absl::Status NotSeen(const absl::Status& status, const std::string& folder) {
  if (!absl::IsNotFound(status)) return WithDamagedCheckpoint(status, folder);
  return WithFault(absl::UnavailableError(absl::StrCat(status.message(), "; is the disk or share that it lies on mounted here?")),
                   Fault::kStorage);
}

}  // namespace

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& folder) {
  absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder);
  if (!manifest.ok()) return NotSeen(manifest.status(), folder);
  if (const absl::Status status = VerifyStructure(folder, *manifest); !status.ok()) return NotSeen(status, folder);
  return CheckpointReader(folder, *std::move(manifest));
}

absl::Status CheckpointReader::Read(int unit, StateTensor tensor, int64_t begin, int64_t end, void* out) {
  if (manifest_.format_version >= kFirstFormatInStorageOrder) return ReadStored(unit, tensor, begin, end, out);
  const auto size = static_cast<size_t>(SizeOfBytes(manifest_.dtype));
  std::vector<char> elements;
  for (const OldRun& run : OldRunsOf(manifest_.model, unit, begin, end)) {
    elements.resize(static_cast<size_t>(run.elements) * size);
    MOTLEY_RETURN_IF_ERROR(ReadStored(unit, tensor, run.begin, run.begin + run.elements, elements.data()));
    char* to = static_cast<char*>(out) + static_cast<size_t>(run.at) * size;
    const size_t step = static_cast<size_t>(run.stride) * size;
    for (size_t at = 0; at < elements.size(); at += size, to += step) std::memcpy(to, elements.data() + at, size);
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::ReadStored(int unit, StateTensor tensor, int64_t begin, int64_t end, void* out) {
  const int64_t size = SizeOfBytes(manifest_.dtype);
  int64_t read = 0;
  for (size_t f = 0; f < manifest_.files.size(); ++f) {
    for (const CheckpointPiece& piece : manifest_.files[f].pieces) {
      if (piece.unit != unit || piece.tensor != tensor) continue;
      const int64_t from = std::max(begin, piece.begin), to = std::min(end, piece.end);
      if (from >= to) continue;
      MOTLEY_RETURN_IF_ERROR(ReadBytes(f, piece.file_offset + (from - piece.begin) * size,
                                       static_cast<char*>(out) + (from - begin) * size, (to - from) * size));
      read += to - from;
    }
  }
  if (read == end - begin) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(folder_, ": elements ", begin, "..", end, " of unit ", unit, " are not all there"));
}

absl::Status CheckpointReader::ReadBytes(size_t file, int64_t offset, char* out, int64_t bytes) {
  while (bytes > 0) {
    const int64_t index = offset / kCheckpointBlockBytes, within = offset % kCheckpointBlockBytes;
    MOTLEY_RETURN_IF_ERROR(LoadBlock(file, index));
    const int64_t count = std::min(bytes, static_cast<int64_t>(block_.size()) - within);
    std::memcpy(out, block_.data() + within, static_cast<size_t>(count));
    out += count;
    offset += count;
    bytes -= count;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::OpenFile(size_t file) {
  if (fd_.get() >= 0 && open_ == file) return absl::OkStatus();
  block_index_ = -1;
  const std::string path = absl::StrCat(folder_, "/", manifest_.files[file].name);
  absl::StatusOr<FileDescriptor> opened = OpenForRead(path, SymbolicLinks::kRefuse);
  if (!opened.ok()) return NotSeen(opened.status(), folder_);
  fd_ = *std::move(opened);
  open_ = file;
  return absl::OkStatus();
}

absl::Status CheckpointReader::LoadBlock(size_t file, int64_t index) {
  MOTLEY_RETURN_IF_ERROR(OpenFile(file));
  if (block_index_ == index) return absl::OkStatus();
  if (blocks_[file].empty()) {
    if (manifest_.format_version == 1) {
      MOTLEY_RETURN_IF_ERROR(DigestWholeFile(file));
    } else {
      blocks_[file] = manifest_.files[file].blocks;
    }
  }
  const CheckpointFile& entry = manifest_.files[file];
  const int64_t begin = index * kCheckpointBlockBytes;
  block_index_ = -1;
  block_.resize(static_cast<size_t>(std::min(kCheckpointBlockBytes, entry.bytes - begin)));
  const absl::Status read = ReadAt(fd_, absl::StrCat(folder_, "/", entry.name), begin, block_.data(), block_.size());
  if (absl::IsDataLoss(read)) return Damaged(file, "is cut off");
  MOTLEY_RETURN_IF_ERROR(read);
  if (Sha256Hex(block_) != blocks_[file][index]) {
    return Damaged(file,
                   absl::StrCat("was altered: the digest of bytes ", begin, " to ", begin + block_.size(), " does not match"));
  }
  block_index_ = index;
  return absl::OkStatus();
}

absl::Status CheckpointReader::DigestWholeFile(size_t file) {
  const CheckpointFile& entry = manifest_.files[file];
  Sha256 whole;
  BlockDigests digests;
  MOTLEY_RETURN_IF_ERROR(ForEachBlock(absl::StrCat(folder_, "/", entry.name), [&](std::string_view block) {
    whole.Update(block.data(), block.size());
    digests.Update(block.data(), static_cast<int64_t>(block.size()));
    return absl::OkStatus();
  }));
  if (whole.Hex() != entry.digest) return Damaged(file, "was altered: its digest does not match");
  blocks_[file] = digests.Finish();
  return absl::OkStatus();
}

absl::Status CheckpointReader::Damaged(size_t file, const std::string& what) const {
  const std::string path = absl::StrCat(folder_, "/", manifest_.files[file].name);
  const absl::StatusOr<CheckpointManifest> now = ReadManifest(folder_);
  if (!now.ok() || ManifestToJson(*now) != ManifestToJson(manifest_)) {
    return WithFault(absl::UnavailableError(absl::StrCat(folder_, " was replaced while it was read")), Fault::kStorage);
  }
  return WithDamagedCheckpoint(absl::DataLossError(absl::StrCat(path, " ", what)), folder_);
}

}  // namespace motley
