// What a program's largest calls need of a transport that copies arrays through the host.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/job/job.h"
#include "common/model/model.h"
#include "common/program/program.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// Before the first step. Errors of Communicator::Reserve.
absl::Status ReserveTransfers(const Program& program, const ModelShape& model, int64_t seq_len, Precision precision,
                              Communicator& communicator);

}  // namespace motley::engine
