#include "planner/util/lack_of_memory.h"

#include <string>
#include <tuple>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace motley::planner {
namespace {

constexpr char kPayload[] = "motley.planner/lacking_bytes", kOneDevice[] = "motley.planner/lack_of_one_device";

}  // namespace

absl::Status LackOfMemory(int64_t bytes, absl::string_view message, LackIn what) {
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(bytes)));
  if (what == LackIn::kOneDevice) status.SetPayload(kOneDevice, absl::Cord());
  return status;
}

std::optional<int64_t> LackingBytes(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  int64_t bytes = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &bytes)) return std::nullopt;
  return bytes;
}

bool IsNearerMiss(const absl::Status& a, const absl::Status& b) {
  const std::optional<int64_t> of_a = LackingBytes(a), of_b = LackingBytes(b);
  if (!of_a || !of_b) return of_a.has_value();
  const auto rank = [](const absl::Status& status, int64_t bytes) {
    return std::tuple(status.GetPayload(kOneDevice).has_value(), bytes);
  };
  return rank(a, *of_a) < rank(b, *of_b);
}

}  // namespace motley::planner
