// What the worker does next with its stream to the coordinator. A pure decision; the session asks again whenever something has
// happened or `wait` is over. All times are steady: who sets the wall clock moves no heartbeat.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace motley::worker {

struct StreamState {
  absl::Duration last_heard;  // anything from the coordinator; at first: when the stream was opened
  absl::Duration patience;    // with its silence: the lease, once it was told
  bool welcomed = false;
  absl::Duration next_heartbeat;  // once welcomed
  bool writing = false;           // one message is on its way; nothing else may be written
  bool has_reports = false;
  absl::Duration stop_at = absl::InfiniteDuration();  // the worker ends: what waits is sent until then
  bool said_goodbye = false;
};

enum class StreamAction { kWait, kSendHeartbeat, kSendReport, kSayGoodbye, kGiveUp };

struct StreamTurn {
  StreamAction action = StreamAction::kWait;
  std::string reason;                              // of kGiveUp
  absl::Duration wait = absl::InfiniteDuration();  // of kWait
};

StreamTurn Decide(absl::Duration now, const StreamState& state);

}  // namespace motley::worker
