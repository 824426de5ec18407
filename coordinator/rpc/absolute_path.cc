#include "coordinator/rpc/absolute_path.h"

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/written_path.h"

namespace motley::coordinator {
namespace {

constexpr size_t kLongestPath = 4096;  // as Linux has it

}  // namespace

absl::Status CheckAbsolutePath(const char* field, const std::string& path) {
  if (const std::string why = WhyNoPath(path, Patterns::kRefuse); !why.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": ", Quoted(path), " ", why));
  }
  if (path.empty() || (path[0] == '/' && path.size() < kLongestPath)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be an absolute path of less than ", kLongestPath, " bytes: it is looked at on every node"));
}

}  // namespace motley::coordinator
