#include "common/checkpoint/needed_blocks.h"

#include <algorithm>

namespace motley {
namespace {

// Of one block of the model: what the ranks own of it.
OwnedRanges OwnedBy(const OwnedRanges& all, const std::vector<int32_t>& ranks) {
  OwnedRanges owned;
  for (const OwnedRange& range : all) {
    if (std::find(ranks.begin(), ranks.end(), range.rank) != ranks.end()) owned.push_back(range);
  }
  return owned;
}

// Whoever reads the folder refuses a manifest with others (VerifyStructure).
bool LiesInFile(const CheckpointPiece& piece, const CheckpointFile& file, int64_t element_bytes) {
  return piece.begin >= 0 && piece.begin <= piece.end && piece.file_offset >= 0 && piece.file_offset <= file.bytes &&
         piece.end - piece.begin <= (file.bytes - piece.file_offset) / element_bytes;
}

void AddBlocks(const CheckpointPiece& piece, const OwnedRanges& owned, int64_t element_bytes, std::vector<int64_t>* blocks) {
  for (const OwnedRange& range : owned) {
    const int64_t begin = std::max(range.begin, piece.begin), end = std::min(range.end, piece.end);
    if (begin >= end) continue;
    const int64_t first_byte = piece.file_offset + (begin - piece.begin) * element_bytes;
    const int64_t last_byte = piece.file_offset + (end - piece.begin) * element_bytes - 1;
    for (int64_t b = first_byte / kCheckpointBlockBytes; b <= last_byte / kCheckpointBlockBytes; ++b) {
      if (blocks->empty() || blocks->back() != b) blocks->push_back(b);
    }
  }
}

void SortOut(std::vector<int64_t>& blocks) {
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
}

}  // namespace

std::vector<std::vector<int64_t>> NeededBlocks(const CheckpointManifest& manifest, const Ownership& ownership,
                                               const std::vector<int32_t>& ranks) {
  const int64_t element_bytes = SizeOfBytes(manifest.dtype);
  std::vector<OwnedRanges> owned;
  for (int32_t block = 0; block < ownership.num_blocks(); ++block) owned.push_back(OwnedBy(ownership.Of(block), ranks));
  std::vector<std::vector<int64_t>> needed(manifest.files.size());
  for (size_t f = 0; f < manifest.files.size(); ++f) {
    const CheckpointFile& file = manifest.files[f];
    for (const CheckpointPiece& piece : file.pieces) {
      if (piece.unit < 0 || piece.unit >= ownership.num_blocks() || !LiesInFile(piece, file, element_bytes)) continue;
      AddBlocks(piece, owned[static_cast<size_t>(piece.unit)], element_bytes, &needed[f]);
    }
    SortOut(needed[f]);
  }
  return needed;
}

std::vector<std::vector<int64_t>> ParameterBlocks(const CheckpointManifest& manifest) {
  const int64_t element_bytes = SizeOfBytes(manifest.dtype);
  std::vector<std::vector<int64_t>> needed(manifest.files.size());
  for (size_t f = 0; f < manifest.files.size(); ++f) {
    const CheckpointFile& file = manifest.files[f];
    for (const CheckpointPiece& piece : file.pieces) {
      if (piece.tensor != StateTensor::kParameter || !LiesInFile(piece, file, element_bytes)) continue;
      AddBlocks(piece, {{.begin = piece.begin, .end = piece.end}}, element_bytes, &needed[f]);
    }
    SortOut(needed[f]);
  }
  return needed;
}

}  // namespace motley
