// Whose fault it is when data that a job's nodes had read and compared is not so on one of them. Pure.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "common/base/fault.h"

namespace motley::engine {

// The job was planned for data that its nodes had read: what is wrong with it now may be wrong on this machine alone. Errors of
// Fault::kStorage stay so.
inline absl::Status OfThisNode(absl::Status status) {
  if (status.ok() || FaultOf(status) == Fault::kStorage) return status;
  return WithFault(std::move(status), Fault::kNode);
}

}  // namespace motley::engine
