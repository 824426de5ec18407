// How fast bytes go from one node to another's data address: one sends a burst, the other takes it, keeps the time and says what
// arrived. Over a connection to the reach listener, after its greeting:
//
//   sender                          taker
//   motley-burst NONCE PROOF\n ──>        (that it knows the examination's secret, without sending it)
//   up to kBurstBytes      ──>
//                          <──      motley-took BYTES NANOSECONDS\n      (after kBurstTime, all bytes, or the sender's end)
//                          <──      motley-busy\n                        (another burst is being taken)
//
// The taker keeps the time because a sender only knows what its kernel has accepted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace motley::worker {

inline constexpr int64_t kBurstBytes = int64_t{64} << 20;
inline constexpr absl::Duration kSlice = absl::Milliseconds(100);  // how late a cancellation may be noticed
inline constexpr absl::Duration kBurstTime = absl::Milliseconds(250);
// Of the taker: for the secret, for the first byte behind it, and for the sender to close when it has its answer.
inline constexpr absl::Duration kTakersPatience = absl::Seconds(1);
// Some packets of any size that cards send, and soon through a slow network.
inline constexpr int64_t kLargeBytes = 64 << 10;
// A line that proves the secret, and once only: whoever heard it cannot say it again. `nonce`: random, hexadecimal digits.
std::string BurstLine(const std::string& secret, const std::string& nonce);
inline constexpr size_t kBurstNonceDigits = 32;

inline constexpr std::string_view kBurstWord = "motley-burst ";
inline constexpr std::string_view kTookWord = "motley-took ";
inline constexpr std::string_view kBusyWord = "motley-busy";

// Bytes per second over a non-blocking socket that is connected and has said its greeting; what is still on the way is thrown
// away with the connection. Blocks for `patience` at most. UNAVAILABLE: the other takes no burst, is busy, or stopped in the
// middle; DEADLINE_EXCEEDED, CANCELLED.
absl::StatusOr<double> SendBurst(int socket, const std::string& secret, const Clock& clock, absl::Duration patience,
                                 const absl::Notification& cancelled);

// A burst of kLargeBytes, for the sake of its packets alone. DEADLINE_EXCEEDED: small ones pass, and none of these; anything else
// that the other does, say because it takes another's burst, tells nothing.
absl::Status TryLargePackets(int socket, const std::string& secret, const Clock& clock, absl::Duration patience,
                             const absl::Notification& cancelled);

// "motley-took 1000 2000": bytes per second. UNAVAILABLE: another text, or too little to be a rate.
absl::StatusOr<double> ParseTook(std::string_view line);

}  // namespace motley::worker
