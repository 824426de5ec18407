// How large a worker's messages may be, by kind.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::coordinator {

// Of any kind; gRPC refuses what is larger before it is read.
inline constexpr size_t kMaxReportBytes = 16 << 20;

// Cuts the free texts of `message` (log lines, what a rank said of its failure) to what is kept of them, then compares its size
// with its kind's limit. RESOURCE_EXHAUSTED names the kind, the size and the limit.
absl::Status LimitReport(v1::WorkerMessage* message);

}  // namespace motley::coordinator
