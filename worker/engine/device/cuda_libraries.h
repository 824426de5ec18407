// The libraries that a card needs at run time and a CPU does not: they are opened when one is assigned. Private to the CUDA back
// end.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace motley::engine {

// libtorch_cuda.so, beside libtorch_cpu.so, with all that it asks for: ATen's operators run on cards from then on. Once a
// process. FAILED_PRECONDITION: what could not be opened, and what brings it.
absl::Status OpenTorchCuda();
// The same from another folder: for tests.
absl::Status OpenTorchCudaIn(const std::string& folder);

}  // namespace motley::engine
