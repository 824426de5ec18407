// Lets one node read what one job has on the disk of another node, for a while. The coordinator gives it; who is asked checks it
// without a question, by a secret that only the coordinator and it know. A ticket is of no use to who cannot show the certificate
// that it is made for.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/ids.h"

namespace motley {

struct FilesTicket {
  JobUid job_uid;
  int64_t expires_unix_ms = 0;
  std::string proof;  // 16 bytes
  friend bool operator==(const FilesTicket&, const FilesTicket&) = default;
};

// `secret`: of the node that is asked. `reader`: SHA-256 (hex) of the certificate that the reader shows.
FilesTicket MakeFilesTicket(const std::string& secret, const std::string& reader, const JobUid& uid, int64_t expires_unix_ms);
// Whether it is of this secret, for this reader, and not over. Without a secret nobody is let in.
bool Admits(const std::string& secret, const FilesTicket& ticket, const std::string& reader, int64_t unix_ms);

}  // namespace motley
