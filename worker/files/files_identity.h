// What a files process shows of itself, to both sides: a key and a certificate that it makes when it starts, and that nobody
// signed. The coordinator hears the certificate's digest by the worker's session and tells it to whoever is to talk with it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace motley::worker {

struct FilesIdentity {
  std::string key, certificate;  // PEM
  std::string digest;            // SHA-256 (hex) of the certificate (Certificate::Hash)
};
// INTERNAL: the library refused.
absl::StatusOr<FilesIdentity> MakeFilesIdentity(absl::Time now);

}  // namespace motley::worker
