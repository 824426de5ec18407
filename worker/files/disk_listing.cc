#include "worker/files/disk_listing.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/base/job_uid.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "worker/files/input_folder.h"
#include "worker/files/job_folder.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;

// Names in a folder, sorted; none where it is not there.
std::vector<std::string> NamesOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Of "ID.UID".
std::optional<std::pair<JobId, JobUid>> JobOfFolder(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || !IsJobUid(std::string_view(name).substr(dot + 1))) return std::nullopt;
  return std::pair(JobId(name.substr(0, dot)), JobUid(name.substr(dot + 1)));
}

void ListJob(const std::string& local, const JobId& job, const JobUid& uid, std::vector<ListedFiles>& out) {
  const std::string checkpoints = LocalCheckpoints(local, job, uid);
  for (const std::string& name : NamesOf(checkpoints)) {
    out.push_back({job, uid, CleanLine(name), "", BytesOnDisk(absl::StrCat(checkpoints, "/", name))});
  }
}

// The list, or what comes, says what it is called.
void ListInputs(const std::string& local, std::vector<ListedFiles>& out) {
  const std::string folder = InputsFolder(local);
  for (const std::string& entry : NamesOf(folder)) {
    absl::string_view id = entry;
    const bool coming = absl::ConsumeSuffix(&id, kPartOfInputSuffix);
    if (!IsInputId(std::string(id))) continue;
    const std::string path = absl::StrCat(folder, "/", entry);
    const std::vector<std::string> names = NamesOf(path);
    out.push_back({JobId(), JobUid(), names.empty() ? "" : CleanLine(names.front()), std::string(id), BytesOnDisk(path), coming});
  }
}

}  // namespace

std::vector<ListedFiles> ListDisk(const std::string& local) {
  std::vector<ListedFiles> listed;
  for (const std::string& name : NamesOf(JobsFolder(local))) {
    if (const auto job = JobOfFolder(name)) ListJob(local, job->first, job->second, listed);
  }
  ListInputs(local, listed);
  return listed;
}

absl::Status RemoveUnwanted(const std::string& local, const UnwantedFiles& unwanted) {
  MOTLEY_RETURN_IF_ERROR(CheckName("the job's id", unwanted.job.value()));
  if (!unwanted.uid.empty() && !IsJobUid(unwanted.uid.value())) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(unwanted.uid.value()), " is no job's uid"));
  }
  for (const std::string& name : NamesOf(JobsFolder(local))) {
    const auto job = JobOfFolder(name);
    const bool meant = job && job->first == unwanted.job && (unwanted.uid.empty() || job->second == unwanted.uid);
    if (meant && job->second != unwanted.kept) MOTLEY_RETURN_IF_ERROR(RemoveTree(JobFolder(local, job->first, job->second)));
  }
  return absl::OkStatus();
}

}  // namespace motley::worker
