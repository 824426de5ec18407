// Messages over a stream socket: a 4-byte little-endian length, then that many bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace motley::worker {

inline constexpr size_t kMaxFrameBytes = 64 << 20;

std::string EncodeFrame(std::string_view body);

// Takes bytes as they come, gives whole messages. Not thread-safe.
class FrameDecoder {
 public:
  explicit FrameDecoder(size_t longest_bytes = kMaxFrameBytes) : longest_bytes_(longest_bytes) {}
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // nullopt: more bytes are needed. DATA_LOSS: a length beyond the longest, the stream is of no more use.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  size_t longest_bytes_;
  std::string buffer_;
  size_t begin_ = 0;
};

// The next message from a blocking socket, by the decoder of this socket. UNAVAILABLE: the other end is gone; DATA_LOSS.
absl::StatusOr<std::string> ReadFrame(int fd, FrameDecoder& decoder);
// Blocking writes until all is sent. UNAVAILABLE when the other end is gone.
absl::Status WriteAll(int fd, std::string_view bytes);

}  // namespace motley::worker
