#include "common/base/some_names.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley {

std::string SomeNames(const std::vector<std::string>& names, size_t most) {
  if (names.size() <= most) return absl::StrJoin(names, ", ");
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(most);
  return absl::StrCat(absl::StrJoin(names.begin(), end, ", "), " and ", names.size() - most, " more");
}

}  // namespace motley
