// What a coordinator's numbers are believed by when workers bring them back. Generations of jobs and the commits of the store are
// given with a token, an HMAC by a key that only the store has; older copies of the store have it, too, and so know numbers that
// they do not remember. Who invents a number has no token for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/session/session.h"

namespace motley::coordinator {

// Thread-safe: constant.
class NumberKey {
 public:
  // A new secret: 32 random bytes as 64 hexadecimal digits. INTERNAL.
  static absl::StatusOr<std::string> NewSecret();

  NumberKey(std::string secret, std::string store_id);

  // Tells keys apart and is no secret: numbers of one key are above each other, those of another mean nothing to it.
  const std::string& id() const { return id_; }
  // 16 bytes. They hold for this number of this job alone; commits have others.
  std::string TokenOf(const JobId& job, Epoch epoch) const;
  StoreMark WithToken(StoreMark mark) const;
  // What is written beside the manifest of a checkpoint on the nodes' disks: 32 hexadecimal digits.
  std::string MarkOf(const JobUid& uid, Epoch epoch, int64_t step, const std::string& manifest_digest) const;
  // Whether it is that one.
  bool Marked(const std::string& mark, const JobUid& uid, Epoch epoch, int64_t step, const std::string& manifest_digest) const;
  // By which a node's files process knows who may read there: none is stored, and each session of the node has its own.
  std::string FilesSecretOf(const NodeName& node, int64_t incarnation) const;
  // Whether it comes with the token that it was given with.
  bool Gave(const SeenEpoch& seen) const;
  bool Gave(const StoreMark& mark) const;

 private:
  std::string Token(std::string_view what) const;

  std::string secret_, store_id_, id_;
};

}  // namespace motley::coordinator
