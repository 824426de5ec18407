// absl::Status as gRPC sends it: the codes are the same numbers.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace motley::coordinator {

// A long text is cut: clients take at most 8 KiB of trailing metadata, in which every byte that is not printable ASCII takes
// three, and see an error of their own instead of a longer one.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace motley::coordinator
