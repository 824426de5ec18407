#include "common/base/job_uid.h"

#include <string>

#include "absl/strings/escaping.h"
#include "common/base/hmac.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

constexpr size_t kUidBytes = 16;

}  // namespace

absl::StatusOr<JobUid> NewJobUid() {
  MOTLEY_ASSIGN_OR_RETURN(const std::string random, RandomBytes(kUidBytes));
  return JobUid(absl::BytesToHexString(random));
}

bool IsJobUid(std::string_view text) {
  return text.size() == 2 * kUidBytes && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace motley
