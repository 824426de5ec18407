// How a rank says that a peer has ended its connection. A rank that has lost one peer closes all of its connections, so this is
// what the others see of a loss elsewhere: of several complaints it says least.
#pragma once

#include <cerrno>
#include <cstring>
#include <string_view>

namespace motley {

inline constexpr char kPeerEnded[] = "the other end closed the connection";

// A message holds these words, or the system's for the same.
inline bool SaysPeerEnded(std::string_view message) {
  for (const std::string_view words :
       {std::string_view(kPeerEnded), std::string_view(std::strerror(ECONNRESET)), std::string_view(std::strerror(EPIPE))}) {
    if (message.find(words) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace motley
