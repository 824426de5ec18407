#include "coordinator/rpc/status.h"

#include <algorithm>
#include <string>

#include "common/base/cut_text.h"

namespace motley::coordinator {
namespace {

constexpr size_t kMostEncodedBytes = 6 << 10;  // leaves 2 KiB to the other trailers

size_t EncodedBytes(std::string_view text) {
  const auto escaped = std::count_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~' || c == '%'; });
  return text.size() + 2 * static_cast<size_t>(escaped);
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  const std::string full(status.message());
  std::string text = CutText(full, kMostEncodedBytes);
  // At worst every byte takes three.
  if (EncodedBytes(text) > kMostEncodedBytes) text = CutText(full, kMostEncodedBytes / 3);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), text);
}

}  // namespace motley::coordinator
