// What rings and hand-overs have in common: a message of a header and a segment, the peer at the other end, and how a transfer
// ends. Private to the engine.
//
// The header carries when the segment left the sender's links by the emulated schedule, so that no rank adds its own wake-up
// delays to the schedule of the others.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "worker/engine/transport/link_clock.h"
#include "worker/engine/transport/segment_socket.h"

namespace motley::engine {

struct Peer {
  std::string name;                 // for messages
  SegmentSocket* socket = nullptr;  // to it
};

struct TransferTimes {
  int64_t begin_ns = 0;     // of a hand-over: both ends are there
  int64_t end_ns = 0;       // by the emulated schedule
  int64_t lateness_ns = 0;  // real end beyond it
};

struct SegmentHeader {
  LinkClock::Slot sent;  // by the emulated schedule
  // A difference in one of these means that the ranks run different programs.
  uint32_t sequence;  // of the collective or hand-over, counted on its connection
  uint32_t index;     // of the segment, counted by its sender
  uint32_t bytes;     // of the segment
  uint32_t reserved;
};

LinkClock::Slot SlotNow();
// Bytes to send are not written to, whatever iovec's type says.
iovec Part(const void* data, int64_t bytes);

absl::Status Aborted();
// UNAVAILABLE, Fault::kPeer.
absl::Status Lost(const Peer& peer, const absl::Status& error);
// UNAVAILABLE, Fault::kOurs: "b/gpu0 sent THIS instead of THAT: the ranks run different programs".
absl::Status DifferentPrograms(const Peer& peer, const std::string& sent, const std::string& expected);

// Sleeps until the end. A paced transfer that is beyond it is late by so much; one that nothing paces ends now.
void AwaitEnd(TransferTimes& times, bool paced);
// For threads that send: from now on this one wakes at its slot's end and not 50 us later.
void WakePunctually();

}  // namespace motley::engine
