// The file `mark` beside a local checkpoint's manifest: the coordinator's proof that it let this checkpoint be published, an HMAC
// over the job's uid, generation, step and the manifest's digest by a key that only its store has. A checkpoint without one of
// its own counts for nothing: so neither a lying node nor an old disk brings one back. docs/inside/local-storage.md
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley {

inline constexpr char kMarkName[] = "mark";

// 32 hexadecimal digits, in lower case: nothing else is written or read.
bool IsMark(std::string_view text);
// One line, durably. INVALID_ARGUMENT: it is no mark.
absl::Status WriteMark(const std::string& folder, const std::string& mark);
// Empty: there is none, or what lies there is none (a link, a pipe, other text). Fault::kStorage: it cannot be read now.
absl::StatusOr<std::string> ReadMark(const FileDescriptor& at, const std::string& folder);

}  // namespace motley
