// Where a node keeps the files of jobs, beneath its [files] local. docs/inside/local-storage.md
//
//   jobs/ID.UID/checkpoints    what its ranks save
//   jobs/ID.UID/resume         what they go on from, as long as they start
#pragma once

#include <string>

#include "common/base/ids.h"

namespace motley::worker {

std::string JobsFolder(const std::string& local);
// An id that was given again meets nothing old: the uid is part of the name.
std::string JobFolder(const std::string& local, const JobId& job, const JobUid& uid);
std::string LocalCheckpoints(const std::string& local, const JobId& job, const JobUid& uid);
// Of the checkpoint of that name.
std::string ResumeFolder(const std::string& local, const JobId& job, const JobUid& uid, const std::string& checkpoint);

}  // namespace motley::worker
