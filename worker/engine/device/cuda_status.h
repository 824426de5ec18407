// What CUDA's runtime answers, as a Status. Private to the CUDA back end.
#pragma once

#include <cuda_runtime_api.h>

#include "absl/status/status.h"

namespace motley::engine {

// RESOURCE_EXHAUSTED: no memory. FAILED_PRECONDITION: the card, its driver or this program's kernels do not fit each other.
// INTERNAL: else. `what`: "waiting for the compute lane".
absl::Status CudaStatus(const char* what, cudaError_t error);

// FAILED_PRECONDITION: there is no driver, or one that is too old for this build's CUDA; with the remedy.
absl::Status CheckDriver();

}  // namespace motley::engine
