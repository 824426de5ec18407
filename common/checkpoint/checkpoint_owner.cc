#include "common/checkpoint/checkpoint_owner.h"

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/checkpoint/checkpoint.h"

namespace motley {
namespace {

bool IsOwn(const CheckpointOwner& owner, const JobUid& uid) {
  return uid.empty() ? owner.uid.empty() || owner.has_unnamed : uid == owner.uid;
}

}  // namespace

bool IsOwn(const CheckpointOwner& owner, const CheckpointManifest& manifest) {
  return manifest.job == owner.job.value() && IsOwn(owner, manifest.job_uid);
}

bool IsOwnUnfinished(const CheckpointOwner& owner, const CheckpointFolder& folder) { return IsOwn(owner, folder.job_uid); }

std::string MakerOf(const CheckpointManifest& manifest) {
  return absl::StrCat("job ", Quoted(manifest.job),
                      manifest.job_uid.empty() ? "" : absl::StrCat(" (uid ", manifest.job_uid.value(), ")"));
}

bool IsRenamed(const CheckpointFolder& folder, const CheckpointManifest& manifest) {
  return folder.step != manifest.step || (folder.epoch != 0 && folder.epoch != manifest.epoch);
}

absl::Status CheckName(const CheckpointFolder& folder, const CheckpointManifest& manifest) {
  if (!IsRenamed(folder, manifest)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder.path, " was renamed, generation ", manifest.epoch,
                                                    " wrote it; call it ", CheckpointFolderName(manifest.step, manifest.epoch),
                                                    " again"));
}

std::string WordToAdopt(const CheckpointManifest& manifest) {
  return manifest.job_uid.empty() ? manifest.job : manifest.job_uid.value();
}

}  // namespace motley
