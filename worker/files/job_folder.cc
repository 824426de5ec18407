#include "worker/files/job_folder.h"

#include "absl/strings/str_cat.h"

namespace motley::worker {

std::string JobsFolder(const std::string& local) { return absl::StrCat(local, "/jobs"); }

std::string JobFolder(const std::string& local, const JobId& job, const JobUid& uid) {
  return absl::StrCat(JobsFolder(local), "/", job.value(), ".", uid.value());
}

std::string LocalCheckpoints(const std::string& local, const JobId& job, const JobUid& uid) {
  return absl::StrCat(JobFolder(local, job, uid), "/checkpoints");
}

std::string ResumeFolder(const std::string& local, const JobId& job, const JobUid& uid, const std::string& checkpoint) {
  return absl::StrCat(JobFolder(local, job, uid), "/resume/", checkpoint);
}

}  // namespace motley::worker
