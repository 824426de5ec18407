// Where a server stream's messages come from.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

enum class Pull { kMessage, kWait, kEnd };

// Called on the loop, one message at a time: the next is asked for when the client took the last. A slow client costs no memory.
template <typename Message>
class StreamSource {
 public:
  virtual ~StreamSource() = default;
  // kMessage: `out` is set. kWait: ask again after news. kEnd, or an error: the stream ends.
  virtual absl::StatusOr<Pull> Next(Core& core, Message* out) = 0;
  // The news to wait for. Constant.
  virtual Topic topic() const = 0;
};

}  // namespace motley::coordinator
