#include "worker/daemon/identity_folder.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace motley::worker {
namespace {

constexpr int64_t kLargestBytes = 64 << 10;
constexpr char kKey[] = "/node.key", kCertificate[] = "/node.crt", kAuthorities[] = "/authorities.crt", kTerm[] = "/term.crt";
constexpr mode_t kFolderMode = 0700, kKeyMode = 0600, kOtherMode = 0644;

absl::Status Read(const std::string& path, std::string* out) {
  absl::StatusOr<std::string> text = ReadSmallFile(path, kLargestBytes);
  if (!text.ok()) {
    // What may get better by itself, a file system that does not answer say, is no reason to join.
    if (!absl::IsNotFound(text.status()) && !absl::IsInvalidArgument(text.status())) return text.status();
    return absl::FailedPreconditionError(
        absl::StrCat(text.status().message(),
                     ": this node has no identity; join the cluster: motley-worker --join TOKEN (docs/use/joining.md)"));
  }
  *out = *std::move(text);
  return absl::OkStatus();
}

bool IsOpenToOthers(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && (found.st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

absl::Status OpenToOthers(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is open to others than its user, who can pretend to be this node: chmod 0600 it; or, if somebody may ",
                   "have read it, remove it, 'motley node forget' this node on the coordinator's machine and join again"));
}

}  // namespace

absl::StatusOr<NodeIdentity> IdentityFolder::Load() const {
  NodeIdentity identity;
  if (IsOpenToOthers(path_ + kKey)) return OpenToOthers(path_ + kKey);
  MOTLEY_RETURN_IF_ERROR(Read(path_ + kKey, &identity.key));
  MOTLEY_RETURN_IF_ERROR(Read(path_ + kCertificate, &identity.certificate));
  MOTLEY_RETURN_IF_ERROR(Read(path_ + kAuthorities, &identity.authorities));
  return identity;
}

absl::StatusOr<PrivateKey> IdentityFolder::LoadKey() const {
  std::string pem;
  if (IsOpenToOthers(path_ + kKey)) return OpenToOthers(path_ + kKey);
  MOTLEY_RETURN_IF_ERROR(Read(path_ + kKey, &pem));
  return PrivateKey::FromPem(pem);
}

absl::StatusOr<PrivateKey> IdentityFolder::LoadOrMakeKey() const {
  if (IsOpenToOthers(path_ + kKey)) return OpenToOthers(path_ + kKey);
  // One that is no key is of no use to anybody.
  if (absl::StatusOr<PrivateKey> key = LoadKey(); key.ok()) return key;
  const bool is_new = !FileExists(path_);
  MOTLEY_RETURN_IF_ERROR(MakeFolders(path_));
  if (is_new && chmod(path_.c_str(), kFolderMode) != 0) return FileError(errno, "close to others", path_);
  MOTLEY_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Make());
  MOTLEY_ASSIGN_OR_RETURN(const std::string pem, key.ToPem());
  MOTLEY_RETURN_IF_ERROR(ReplaceFileDurably(path_ + kKey, pem, kKeyMode));
  return key;
}

absl::Status IdentityFolder::SaveCertificate(const std::string& pem) const {
  return ReplaceFileDurably(path_ + kCertificate, pem, kOtherMode);
}

absl::Status IdentityFolder::SaveAuthorities(const std::string& pem) const {
  return ReplaceFileDurably(path_ + kAuthorities, pem, kOtherMode);
}

absl::StatusOr<std::string> IdentityFolder::LoadTerm() const {
  absl::StatusOr<std::string> pem = ReadSmallFile(path_ + kTerm, kLargestBytes);
  return absl::IsNotFound(pem.status()) ? std::string() : pem;
}

absl::Status IdentityFolder::SaveTerm(const std::string& pem) const { return ReplaceFileDurably(path_ + kTerm, pem, kOtherMode); }

}  // namespace motley::worker
