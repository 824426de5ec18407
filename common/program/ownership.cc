#include "common/program/ownership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

OwnedRanges Merged(const OwnedRanges& ranges) {
  OwnedRanges merged;
  for (const OwnedRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (!merged.empty() && merged.back().rank == range.rank && merged.back().end == range.begin) {
      merged.back().end = range.end;
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

absl::Status Broken(int32_t block, int64_t begin, int64_t end, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("ownership: elements ", begin, " to ", end, " of block ", block, what));
}

absl::Status CheckBlock(const OwnedRanges& ranges, int32_t block, int64_t elements, int32_t world) {
  int64_t next = 0;
  int32_t owner = -1;
  for (const OwnedRange& range : ranges) {
    if (range.rank < 0 || range.rank >= world) {
      return Broken(block, range.begin, range.end, absl::StrCat(" are of rank ", range.rank, ", there are ", world));
    }
    if (range.begin < 0 || range.end <= range.begin) return Broken(block, range.begin, range.end, " are no range");
    if (range.begin > next) return Broken(block, next, range.begin, " have no owner");
    if (range.begin < next) {
      return Broken(block, range.begin, std::min(next, range.end),
                    absl::StrCat(" have two owners, rank ", owner, " and rank ", range.rank));
    }
    next = range.end;
    owner = range.rank;
  }
  if (next < elements) return Broken(block, next, elements, " have no owner");
  if (next > elements) return Broken(block, elements, next, absl::StrCat(" do not exist: it has ", elements));
  return absl::OkStatus();
}

}  // namespace

void Ownership::Add(const OwnedRanges& ranges) {
  OwnedRanges merged = Merged(ranges);
  // Blocks that are owned alike are mostly neighbours.
  const auto known = std::find(ranges_.rbegin(), ranges_.rend(), merged);
  if (known != ranges_.rend()) {
    alike_.push_back(static_cast<int32_t>(ranges_.rend() - known) - 1);
    return;
  }
  alike_.push_back(static_cast<int32_t>(ranges_.size()));
  ranges_.push_back(std::move(merged));
}

int64_t Ownership::NumOwned(int32_t block, int32_t rank) const {
  int64_t owned = 0;
  for (const OwnedRange& range : Of(block)) owned += range.rank == rank ? range.size() : 0;
  return owned;
}

std::vector<double> Ownership::NumOwnedByRank(size_t world) const {
  std::vector<double> blocks(ranges_.size(), 0), owned(world, 0);
  for (const int32_t alike : alike_) ++blocks[static_cast<size_t>(alike)];
  for (size_t i = 0; i < ranges_.size(); ++i) {
    for (const OwnedRange& range : ranges_[i]) {
      owned[static_cast<size_t>(range.rank)] += blocks[i] * static_cast<double>(range.size());
    }
  }
  return owned;
}

std::vector<Ownership::Alike> Ownership::AlikeBlocks() const {
  std::vector<Alike> all(ranges_.size());
  for (size_t i = 0; i < all.size(); ++i) all[i].ranges = &ranges_[i];
  for (int32_t block = 0; block < num_blocks(); ++block) {
    std::vector<BlockSpan>& spans = all[static_cast<size_t>(alike_[static_cast<size_t>(block)])].blocks;
    if (!spans.empty() && spans.back().last == block - 1) {
      spans.back().last = block;
    } else {
      spans.push_back({block, block});
    }
  }
  return all;
}

absl::Status Validate(const Ownership& ownership, const std::vector<int64_t>& elements, int32_t world) {
  if (ownership.num_blocks() != static_cast<int32_t>(elements.size())) {
    return absl::InvalidArgumentError(absl::StrCat("ownership: of ", ownership.num_blocks(), " blocks, the model has ",
                                                   elements.size(), " (embedding, layers, head)"));
  }
  for (int32_t block = 0; block < ownership.num_blocks(); ++block) {
    const absl::Status status = CheckBlock(ownership.Of(block), block, elements[static_cast<size_t>(block)], world);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace motley
