// Which blocks of a checkpoint's files ranks read when they go on from it. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "common/program/ownership.h"

namespace motley {

// By file of the manifest: the numbers of its blocks of kCheckpointBlockBytes that hold an element of what `ranks` own,
// parameters and moments, ascending. Of arrays in storage order (kFirstFormatInStorageOrder). Blocks that the ownership does not
// have hold nothing that is needed.
std::vector<std::vector<int64_t>> NeededBlocks(const CheckpointManifest& manifest, const Ownership& ownership,
                                               const std::vector<int32_t>& ranks);

// The same of what an export reads: the blocks that hold a parameter.
std::vector<std::vector<int64_t>> ParameterBlocks(const CheckpointManifest& manifest);

}  // namespace motley
