// What waits to be sent to the coordinator. Bounded: while the coordinator is away, log lines and then step reports are
// dropped, oldest first; events, results and answers never are (their number is bounded by what the coordinator asked for).
// Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <condition_variable>
#include <optional>

#include "absl/time/time.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::worker {

class Outbox {
 public:
  explicit Outbox(size_t capacity = 10000) : capacity_(capacity) {}

  void Push(v1::WorkerMessage message);
  // The oldest message; nullopt after the timeout or a Wake.
  std::optional<v1::WorkerMessage> Pop(absl::Duration timeout);
  // What could not be sent goes back to the front.
  void PutBack(v1::WorkerMessage message);
  void Wake();
  size_t size() const;
  size_t dropped() const;

 private:
  void TrimLocked();

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::WorkerMessage> messages_;
  size_t dropped_ = 0;
  bool woken_ = false;
};

}  // namespace motley::worker
