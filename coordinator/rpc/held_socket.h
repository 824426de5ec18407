// A connection that was handed to gRPC, which closes it without telling: its number may be another's by then, and the inode says.
#pragma once

#include <cstdint>
#include <string>

namespace motley::coordinator {

struct HeldSocket {
  static HeldSocket Of(int fd);
  bool IsOpen() const;
  // gRPC reads its end, and closes it. False: it is closed already, or there is no descriptor to do it with.
  bool ShutDown() const;

  int fd = -1;
  uint64_t inode = 0;
  std::string peer;  // PeerOfSocket
};

}  // namespace motley::coordinator
