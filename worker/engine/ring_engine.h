// One pass of segments around the ring, both directions at once: the caller's thread receives, an own thread sends.
// Private to the engine. docs/collectives.md
//
// Each message is a header and a segment. The header carries when the segment left the sender's links by the emulated schedule,
// so that no rank adds its own wake-up delays to the schedule of the others.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "worker/engine/link_pacer.h"
#include "worker/engine/ring_stream.h"

namespace motley::engine {

enum class RingCombine { kCopy, kAddFloat32, kAddFloat64 };

struct RingResult {
  std::string error;        // empty = fine
  int64_t end_ns = 0;       // by the emulated schedule
  int64_t lateness_ns = 0;  // real end beyond it
};

class RingEngine {
 public:
  // shared_clock: the left neighbour's CLOCK_MONOTONIC is ours (same machine).
  RingEngine(gloo::Context& context, LinkPacer& pacer, int left, int right, bool shared_clock, std::chrono::milliseconds timeout);
  ~RingEngine();

  // Blocks until everything is received and sent. `progress` is called after each received segment.
  RingResult Pass(const RingStream& stream, char* array, RingCombine combine, int64_t ready_ns,
                  const std::function<void()>& progress);
  // Wakes a Pass under way. Thread-safe.
  void Abort();

 private:
  // One Pass, shared by the two threads.
  struct Job {
    const RingStream* stream = nullptr;
    const char* array = nullptr;
    std::vector<int64_t> ready_ns;  // by segment: when it may be sent on
    int64_t available = 0;          // segments [0, available) may be sent
    int64_t sent_end_ns = 0;
    bool sender_done = false;
    std::string error;
  };

  void SenderLoop();
  void SendAll(Job& job, uint64_t sequence);
  void Receive(Job& job, char* array, RingCombine combine, uint64_t sequence, const std::function<void()>& progress,
               int64_t* end_ns);
  void Fail(Job& job, const std::string& error);

  LinkPacer& pacer_;
  const int left_, right_;
  const bool shared_clock_;
  const std::chrono::milliseconds timeout_;
  std::vector<char> send_memory_, recv_memory_;
  std::unique_ptr<gloo::transport::UnboundBuffer> send_buffer_, recv_buffer_;
  std::atomic<bool> aborted_{false};

  absl::Mutex mutex_;
  absl::CondVar changed_;
  Job* job_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the pointer; the job's fields too while both threads run
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread sender_;
};

}  // namespace motley::engine
