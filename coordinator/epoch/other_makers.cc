#include "coordinator/epoch/other_makers.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_owner.h"

namespace motley::coordinator {
namespace {

constexpr size_t kMostMakers = 5;

// Of the manifest, which is written last. A copy may have the time of the copy; a guess is better than none.
std::string SavedText(const std::string& folder) {
  struct stat info = {};
  if (::stat(absl::StrCat(folder, "/", kManifestName).c_str(), &info) != 0) return "";
  return absl::StrCat(", saved ", absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromTimeT(info.st_mtime), absl::UTCTimeZone()));
}

}  // namespace

void OtherMakers::Add(const CheckpointManifest& manifest, const std::string& folder) {
  const std::string name = MakerOf(manifest);
  if (std::any_of(makers_.begin(), makers_.end(), [&](const Maker& maker) { return maker.name == name; })) return;
  makers_.push_back({name, WordToAdopt(manifest), absl::StrCat("newest step ", manifest.step, SavedText(folder))});
}

std::string OtherMakers::Text() const {
  std::string text;
  for (size_t i = 0; i < makers_.size() && i < kMostMakers; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "; ", makers_[i].name, ", ", makers_[i].newest);
  }
  if (makers_.size() > kMostMakers) absl::StrAppend(&text, "; and ", makers_.size() - kMostMakers, " more");
  return text;
}

std::string OtherMakers::FirstWord() const { return makers_.empty() ? "" : makers_.front().word; }

}  // namespace motley::coordinator
