// What a command that sets a job going says of it afterwards.
#pragma once

#include <cstdint>

#include "coordinator/client/command.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::client {

// Waits a second for the coordinator's first word: a file that is not there or a plan that is not possible is this command's
// error, with its exit code. `cursor`: where the job's updates begin.
Exit Begin(Context& context, Connection& connection, const v1::Job& job, int64_t cursor = 0);

// Prints progress until the job has ended; 1 when it did not succeed.
Exit Follow(Context& context, Connection& connection, const v1::Job& job, int64_t cursor = 0);

}  // namespace motley::client
