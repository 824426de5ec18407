#include "common/job/unknown_key.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"

namespace motley {

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = NearestWord(word, known);
  if (!nearest.empty()) return absl::StrCat("; did you mean '", nearest, "'?");
  return absl::StrCat("; known are ", absl::StrJoin(known, ", "));
}

std::string AskedInPlanning(std::string_view key) {
  if (!key.ends_with("state_bytes_per_parameter")) return {};
  return "; jobs keep AdamW in float32, 16 bytes a parameter: 'motley plan --state-bytes-per-parameter' asks what another "
         "optimizer would change";
}

}  // namespace motley
