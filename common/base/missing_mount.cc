#include "common/base/missing_mount.h"

#include <mntent.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

std::set<std::string> PlacesIn(const std::string& table) {
  std::set<std::string> places;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(::setmntent(table.c_str(), "re"), &::endmntent);
  if (file == nullptr) return places;
  mntent entry;
  char text[4096];
  while (::getmntent_r(file.get(), &entry, text, sizeof(text)) != nullptr) {
    std::string place = std::filesystem::path(entry.mnt_dir).lexically_normal().string();
    if (place.size() > 1 && place.back() == '/') place.pop_back();
    if (place.starts_with('/') && place != "/") places.insert(std::move(place));  // swap has "none"
  }
  return places;
}

bool IsAtOrBelow(const std::string& path, const std::string& place) {
  return path.starts_with(place) && (path.size() == place.size() || path[place.size()] == '/');
}

}  // namespace

absl::Status CheckMounted(const std::string& path, const std::string& fstab, const std::string& mounts) {
  std::error_code ignored;
  const std::string plain = std::filesystem::path(path).lexically_normal().string();
  const std::string real = std::filesystem::weakly_canonical(path, ignored).string();
  std::set<std::string> mounted;  // read only where the other table has a place that matters
  for (const std::string& place : PlacesIn(fstab)) {
    if (!IsAtOrBelow(plain, place) && !IsAtOrBelow(real, place)) continue;
    if (mounted.empty()) mounted = PlacesIn(mounts);
    const std::string real_place = std::filesystem::weakly_canonical(place, ignored).string();
    if (mounted.empty() || mounted.contains(place) || mounted.contains(real_place)) continue;
    return absl::FailedPreconditionError(absl::StrCat(path, " lies below ", place, ", where ", fstab,
                                                      " has a file system that is not mounted; mount it (mount ", place,
                                                      "), or take it out of ", fstab));
  }
  return absl::OkStatus();
}

}  // namespace motley
