#include "coordinator/client/exit_code.h"

#include <sysexits.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace motley::client {
namespace {

Exit With(int code, const absl::Status& status) { return {code, std::string(status.message())}; }

}  // namespace

Exit FromServer(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return {};
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return With(EX_UNAVAILABLE, status);
    case absl::StatusCode::kNotFound:
      return With(EX_NOINPUT, status);
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return With(EX_DATAERR, status);
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
      return With(EX_TEMPFAIL, status);
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return With(EX_NOPERM, status);
    case absl::StatusCode::kUnimplemented:
      return With(EX_CONFIG, status);
    default:
      return With(EX_SOFTWARE, status);
  }
}

Exit RefuseDirectory(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {};
  return {EX_NOINPUT, absl::StrCat(path, " is a directory; give a file")};
}

Exit FromFiles(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return {};
    case absl::StatusCode::kNotFound:
      return With(EX_NOINPUT, status);
    case absl::StatusCode::kAlreadyExists:
      return With(EX_CANTCREAT, status);
    case absl::StatusCode::kPermissionDenied:
      return With(EX_NOPERM, status);
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return With(EX_DATAERR, status);
    case absl::StatusCode::kUnimplemented:
      return With(EX_CONFIG, status);
    default:
      return With(EX_IOERR, status);
  }
}

}  // namespace motley::client
