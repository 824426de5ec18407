// The libraries that a card needs at run time and a CPU does not: they are opened when one is assigned. Private to the CUDA back
// end.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/engine/nccl/nccl_library.h"

namespace motley::engine {

// What this engine asks of PyTorch on cards, before OpenTorchCuda. Memory in segments that grow, unless the user has said how:
// with segments of fixed sizes a full card frees some, which waits for all kernels, receives that wait for a peer among them.
// Half products are reduced in float32: the parts of a long sum are not rounded.
void PrepareTorchCuda();

// libtorch_cuda.so, beside libtorch_cpu.so, with all that it asks for: ATen's operators run on cards from then on. Once a
// process. FAILED_PRECONDITION: what could not be opened, and what brings it.
absl::Status OpenTorchCuda();
// The same from another folder: for tests.
absl::Status OpenTorchCudaIn(const std::string& folder);

// $MOTLEY_NCCL_LIBRARY, else the one that this libtorch was built with, where it is, else the system's. Errors as OpenNccl's.
absl::StatusOr<NcclLibrary> OpenTorchsNccl();

}  // namespace motley::engine
