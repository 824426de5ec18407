#include "worker/engine/profiler/profile_time.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace motley::engine {

std::string ProfileTime::CutShortText() const {
  if (!cut_short()) return "";
  return absl::StrFormat("cut short after %.0f s, not measured: %s", absl::ToDoubleSeconds(spent()),
                         absl::StrJoin(left_out_, "; "));
}

}  // namespace motley::engine
