// Messages over the rank's socket: bytes in pieces, as a socket gives them.
#include "tests/fuzz/fuzz.h"
#include "worker/daemon/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const std::string_view bytes = fuzz::Text(data, size);
  // As bytes of a stranger.
  worker::FrameDecoder stranger;
  const size_t step = size == 0 ? 1 : data[0] % 7 + 1;
  for (size_t at = 0; at < size; at += step) {
    stranger.Append(bytes.substr(at, step));
    for (;;) {
      const auto message = stranger.Next();
      if (!message.ok()) return 0;
      if (!message->has_value()) break;
      fuzz::Require((*message)->size() <= size, "a message is longer than all that came");
    }
  }
  // As bodies of our own.
  worker::FrameDecoder ours;
  const std::string frame = worker::EncodeFrame(bytes);
  ours.Append(std::string_view(frame).substr(0, frame.size() / 2));
  ours.Append(std::string_view(frame).substr(frame.size() / 2));
  const auto message = ours.Next();
  fuzz::Require(message.ok() && message->has_value() && **message == bytes, "a message that was sent comes as another");
  return 0;
}
