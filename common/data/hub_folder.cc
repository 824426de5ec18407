#include "common/data/hub_folder.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/some_names.h"

namespace motley {
namespace {

constexpr char kBlobs[] = "blobs", kRefs[] = "refs", kSnapshots[] = "snapshots";
constexpr size_t kSha1Digits = 40, kSha256Digits = 64;
constexpr size_t kMostRevisions = 4;

// With what a broken-off download leaves behind it: "DIGEST.incomplete".
bool IsDigest(const std::string& name) {
  const std::string digits = name.substr(0, name.find('.'));
  return (digits.size() == kSha1Digits || digits.size() == kSha256Digits) &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
}

bool Holds(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool IsHubFolder(const HubFolder& folder) {
  return Holds(folder.names, kBlobs) && Holds(folder.names, kSnapshots) && !folder.blobs.empty() && !folder.revisions.empty() &&
         std::all_of(folder.blobs.begin(), folder.blobs.end(), IsDigest);
}

bool IsHubsOwn(const std::string& name) { return name == kBlobs || name == kRefs; }

absl::Status CheckOneRevision(const std::string& path, const HubFolder& folder) {
  if (folder.revisions.size() < 2) return absl::OkStatus();
  std::vector<std::string> revisions;
  for (const std::string& revision : folder.revisions) revisions.push_back(absl::StrCat(path, "/", kSnapshots, "/", revision));
  std::sort(revisions.begin(), revisions.end());
  return absl::InvalidArgumentError(absl::StrCat(
      "data folder ", path, " holds ", revisions.size(),
      " revisions of one download, whose texts are mostly the same; give one of them: ", SomeNames(revisions, kMostRevisions)));
}

}  // namespace motley
