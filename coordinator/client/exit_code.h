// How a command ends: a process exit code of sysexits.h and the sentence that explains it.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace motley::client {

// 0 success; 1 the job that was waited for failed or was stopped; 64 the command line is wrong whatever the files hold; 65 what
// it names is: a job, cluster or plan file, a request that the coordinator refuses, a plan that does not fit, a cluster of which
// `doctor` says so; 66 a file, job or node is not there; 69 no coordinator; 70 an error of ours; 73 the output exists or cannot
// be made; 74 reading or writing failed; 75 try again later; 77 not allowed; 78 not built yet: a plan that the engine does not
// run, an RPC that the coordinator lacks.
struct Exit {
  int code = 0;
  std::string message;  // for standard error; empty = nothing to say
};

inline constexpr int kJobDidNotSucceed = 1;
inline constexpr int kUsage = 64;

// What the coordinator, or the way to it, answered.
Exit FromServer(const absl::Status& status);
// 66 where a directory is given for a file that is read; else nothing.
Exit RefuseDirectory(const std::string& path);
// What files of this machine gave.
Exit FromFiles(const absl::Status& status);
// A job file that does not load: one that is wrong is wrong data, as any other file.
inline Exit FromJobFile(const absl::Status& status) { return FromFiles(status); }

}  // namespace motley::client
