// Named ranges for Nsight Systems, one for each instruction that a lane's thread runs (docs/inside/cuda.md). They come from
// PyTorch's library for cards, which has NVTX inside. Private to the engine.
#pragma once

#include <string>

#include "common/program/operation.h"

namespace motley::engine {

// Whether $MOTLEY_NVTX=1 asks for ranges and that library is open.
bool NvtxIsWanted();

// "forward unit 3 microbatch 1 mlp".
std::string NvtxName(const Operation& op);

// A range of the calling thread while this lives.
class NvtxRange {
 public:
  // `wanted`: else it is nothing.
  NvtxRange(bool wanted, const Operation& op);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  const bool wanted_;
};

}  // namespace motley::engine
