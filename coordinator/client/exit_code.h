// How a command ends: a process exit code of sysexits.h and the sentence that explains it.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace motley::client {

// 0 success; 1 the job that was waited for failed or was stopped; 64 wrong command line; 65 the coordinator refused the
// request, or what was to be planned is wrong or does not fit; 66 a file, job or node is not there; 69 no coordinator; 70 an
// error of ours; 73 the output exists or cannot be made; 74 reading or writing failed; 75 try again later; 77 not allowed;
// 78 the job file is wrong.
struct Exit {
  int code = 0;
  std::string message;  // for standard error; empty = nothing to say
};

inline constexpr int kJobDidNotSucceed = 1;
inline constexpr int kUsage = 64;
inline constexpr int kConfig = 78;

// What the coordinator, or the way to it, answered.
Exit FromServer(const absl::Status& status);
// 66 where a directory is given for a file that is read; else nothing.
Exit RefuseDirectory(const std::string& path);
// What files of this machine gave.
Exit FromFiles(const absl::Status& status);
// A job file that does not load.
Exit FromJobFile(const absl::Status& status);

}  // namespace motley::client
