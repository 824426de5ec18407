#include "worker/daemon/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace motley::worker {

std::string EncodeFrame(std::string_view body) {
  const auto size = static_cast<uint32_t>(body.size());
  std::string frame;
  frame.reserve(body.size() + 4);
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>((size >> shift) & 0xff);
  frame.append(body);
  return frame;
}

absl::StatusOr<std::optional<std::string>> FrameDecoder::Next() {
  const size_t available = buffer_.size() - begin_;
  uint32_t size = 0;
  if (available < 4) return std::nullopt;
  for (int i = 0; i < 4; ++i) size |= static_cast<uint32_t>(static_cast<unsigned char>(buffer_[begin_ + i])) << (8 * i);
  if (size > longest_bytes_)
    return absl::DataLossError(absl::StrCat("a message of ", size, " bytes; at most ", longest_bytes_, " are taken"));
  if (available < 4 + size_t{size}) return std::nullopt;
  std::string body = buffer_.substr(begin_ + 4, size);
  begin_ += 4 + size;
  if (begin_ == buffer_.size() || begin_ > (size_t{1} << 20)) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return body;
}

absl::StatusOr<std::string> ReadFrame(int fd, FrameDecoder& decoder) {
  char buffer[1 << 16];
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(std::optional<std::string> frame, decoder.Next());
    if (frame) return *std::move(frame);
    const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError("the other end of the socket is gone");
    decoder.Append(std::string_view(buffer, static_cast<size_t>(n)));
  }
}

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::UnavailableError(absl::StrCat("cannot write to the other end of the socket: ", strerror(errno)));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace motley::worker
