// One running motley-rank as its worker sees it: its process, socket and output. Used from the supervisor's thread only.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/session/session.h"
#include "worker/daemon/frame.h"
#include "worker/daemon/line_cutter.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {

class RankProcess {
 public:
  // `arguments`: beside those that name its descriptors.
  static absl::StatusOr<std::unique_ptr<RankProcess>> Start(const std::string& program, const std::vector<std::string>& arguments,
                                                            const std::vector<std::string>& variables,
                                                            const SharedMemory& memory);
  // Kills and reaps what still runs.
  ~RankProcess();

  pid_t pid() const { return pid_; }
  int socket_fd() const { return socket_.get(); }  // -1 once closed
  int output_fd() const { return output_.get(); }
  bool wants_write() const { return !pending_.empty(); }

  // Queues and sends what the socket takes. RESOURCE_EXHAUSTED when the rank has taken nothing for 64 MiB of messages.
  absl::Status Send(const RankCommand& command);
  absl::Status Flush();
  // What has arrived, a mebibyte at most beyond one message; the socket is closed at its end. DATA_LOSS: not a message, or one
  // larger than its kind may be.
  absl::StatusOr<std::vector<RankMessage>> Receive();
  // Whole lines of its output, a mebibyte at most; at the end also an unfinished one.
  std::vector<std::string> ReadLines();
  // The newest lines that it printed: its last words when it dies.
  const std::string& last_line() const { return last_line_; }

  // Asks it to end, by closing its socket.
  void CloseSocket() { socket_.Reset(); }
  void Kill();
  // "exited with status 1", "was killed by signal 9 (Killed)"; nullopt while it lives. Never blocks.
  std::optional<std::string> TryReap();

 private:
  explicit RankProcess(SpawnedProcess spawned);

  pid_t pid_;
  UniqueFd socket_, output_;
  FrameDecoder decoder_;
  std::string pending_;  // not yet taken by the socket
  LineCutter lines_;
  std::string last_line_;
  bool reaped_ = false;
};

}  // namespace motley::worker
