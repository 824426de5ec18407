#include "worker/engine/ring_engine.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "worker/engine/monotonic.h"

namespace motley::engine {
namespace {

// Segments in flight in each direction: enough that a late thread does not starve its neighbour.
constexpr int64_t kRingDepth = 16;

struct Header {
  LinkClock::Slot sent;  // by the emulated schedule
  // A difference in one of these means that the ranks run different programs.
  uint32_t sequence;  // of the pass
  uint32_t index;     // of the segment, counted by its sender
  uint32_t bytes;     // of the segment
  uint32_t reserved;
};
constexpr int64_t kHeaderBytes = sizeof(Header);
static_assert(kHeaderBytes % 8 == 0, "segments stay aligned for float64");
constexpr int64_t kStride = kHeaderBytes + kMaxSegmentBytes;

LinkClock::Slot Now() {
  const int64_t now_ns = MonotonicNs();
  return {now_ns, now_ns};
}

int64_t SlotOffset(int64_t index) { return index % kRingDepth * kStride; }

void CheckHeader(const Header& header, uint64_t sequence, int64_t index, int64_t bytes) {
  if (header.sequence == static_cast<uint32_t>(sequence) && header.index == index && header.bytes == bytes) return;
  const auto text = [](uint32_t collective, int64_t segment, int64_t size) {
    return "segment " + std::to_string(segment) + " of " + std::to_string(size) + " bytes of collective " +
           std::to_string(collective);
  };
  throw std::runtime_error("the left neighbour sent " + text(header.sequence, header.index, header.bytes) + " instead of " +
                           text(static_cast<uint32_t>(sequence), index, bytes) + ": the ranks run different programs");
}

template <typename T>
void Add(char* to, const char* from, int64_t bytes) {
  T* sum = reinterpret_cast<T*>(to);
  const T* term = reinterpret_cast<const T*>(from);
  for (int64_t i = 0, n = bytes / static_cast<int64_t>(sizeof(T)); i < n; ++i) sum[i] += term[i];
}

void Combine(RingCombine combine, char* to, const char* from, int64_t bytes) {
  switch (combine) {
    case RingCombine::kCopy:
      std::memcpy(to, from, bytes);
      break;
    case RingCombine::kAddFloat32:
      Add<float>(to, from, bytes);
      break;
    case RingCombine::kAddFloat64:
      Add<double>(to, from, bytes);
      break;
  }
}

}  // namespace

RingEngine::RingEngine(gloo::Context& context, LinkPacer& pacer, int left, int right, bool shared_clock,
                       std::chrono::milliseconds timeout)
    : pacer_(pacer),
      left_(left),
      right_(right),
      shared_clock_(shared_clock),
      timeout_(timeout),
      send_memory_(kRingDepth * kStride),
      recv_memory_(kRingDepth * kStride),
      send_buffer_(context.createUnboundBuffer(send_memory_.data(), send_memory_.size())),
      recv_buffer_(context.createUnboundBuffer(recv_memory_.data(), recv_memory_.size())),
      sender_([this] { SenderLoop(); }) {}

RingEngine::~RingEngine() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  sender_.join();
}

void RingEngine::Abort() {
  aborted_ = true;
  send_buffer_->abortWaitSend();
  recv_buffer_->abortWaitRecv();
  absl::MutexLock lock(&mutex_);
  changed_.SignalAll();
}

void RingEngine::Fail(Job& job, const std::string& error) {
  {
    absl::MutexLock lock(&mutex_);
    if (job.error.empty()) job.error = error;
  }
  Abort();
}

void RingEngine::SenderLoop() {
  prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds: segments are sent at their slot's end, not 50 us later
  for (;;) {
    Job* job;
    uint64_t sequence;
    {
      absl::MutexLock lock(&mutex_);
      while (!stopping_ && (job_ == nullptr || job_->sender_done)) changed_.Wait(&mutex_);
      if (stopping_) return;
      job = job_;
      sequence = sequence_;
    }
    try {
      SendAll(*job, sequence);
    } catch (const std::exception& error) {
      Fail(*job, error.what());
    }
    absl::MutexLock lock(&mutex_);
    job->sender_done = true;
    changed_.SignalAll();
  }
}

void RingEngine::SendAll(Job& job, uint64_t sequence) {
  const RingStream& stream = *job.stream;
  int64_t completed = 0;
  for (int64_t i = 0; i < stream.send_end; ++i) {
    int64_t ready_ns;
    {
      absl::MutexLock lock(&mutex_);
      while (job.available <= i && !aborted_) changed_.Wait(&mutex_);
      ready_ns = job.ready_ns[i];
    }
    if (aborted_) throw std::runtime_error("aborted");
    const Segment& segment = stream.segments[i];
    const LinkClock::Slot sent = pacer_.paced_out() ? pacer_.ReserveOut(segment.bytes, ready_ns) : Now();
    for (; completed <= i - kRingDepth; ++completed) {
      if (!send_buffer_->waitSend(nullptr, timeout_)) throw std::runtime_error("aborted");
    }
    char* slot = send_memory_.data() + SlotOffset(i);
    const Header header{sent, static_cast<uint32_t>(sequence), static_cast<uint32_t>(i), static_cast<uint32_t>(segment.bytes), 0};
    std::memcpy(slot, &header, sizeof(header));
    std::memcpy(slot + kHeaderBytes, job.array + segment.offset_bytes, segment.bytes);
    SleepUntilNs(sent.end_ns);
    send_buffer_->send(right_, sequence, SlotOffset(i), kHeaderBytes + segment.bytes);
    job.sent_end_ns = std::max(job.sent_end_ns, sent.end_ns);
  }
  for (; completed < stream.send_end; ++completed) {
    if (!send_buffer_->waitSend(nullptr, timeout_)) throw std::runtime_error("aborted");
  }
}

void RingEngine::Receive(Job& job, char* array, RingCombine combine, uint64_t sequence, const std::function<void()>& progress,
                         int64_t* end_ns) {
  const RingStream& stream = *job.stream;
  auto post = [&](int64_t i) {
    if (i < stream.size()) recv_buffer_->recv(left_, sequence, SlotOffset(i), kHeaderBytes + stream.segments[i].bytes);
  };
  for (int64_t i = stream.recv_begin; i < stream.recv_begin + kRingDepth; ++i) post(i);
  for (int64_t i = stream.recv_begin; i < stream.size(); ++i) {
    if (!recv_buffer_->waitRecv(nullptr, timeout_) || aborted_) throw std::runtime_error("aborted");
    const char* slot = recv_memory_.data() + SlotOffset(i);
    Header header;
    std::memcpy(&header, slot, sizeof(header));
    const Segment& segment = stream.segments[i];
    CheckHeader(header, sequence, i - stream.recv_begin, segment.bytes);
    Combine(combine, array + segment.offset_bytes, slot + kHeaderBytes, segment.bytes);
    const LinkClock::Slot sent = shared_clock_ ? header.sent : Now();
    const int64_t in_ns = pacer_.ReserveIn(segment.bytes, sent).end_ns;
    *end_ns = std::max(*end_ns, in_ns);
    post(i + kRingDepth);
    {
      absl::MutexLock lock(&mutex_);
      job.ready_ns[i] = in_ns;
      job.available = i + 1;
      changed_.SignalAll();
    }
    if (progress) progress();
  }
}

RingResult RingEngine::Pass(const RingStream& stream, char* array, RingCombine combine, int64_t ready_ns,
                            const std::function<void()>& progress) {
  Job job;
  job.stream = &stream;
  job.array = array;
  job.ready_ns.assign(stream.size(), ready_ns);
  job.available = stream.recv_begin;
  uint64_t sequence;
  {
    absl::MutexLock lock(&mutex_);
    job_ = &job;
    sequence = ++sequence_;
    changed_.SignalAll();
  }
  RingResult result;
  result.end_ns = ready_ns;
  try {
    Receive(job, array, combine, sequence, progress, &result.end_ns);
  } catch (const std::exception& error) {
    Fail(job, error.what());
  }
  {
    absl::MutexLock lock(&mutex_);
    while (!job.sender_done) changed_.Wait(&mutex_);
    job_ = nullptr;
    result.error = job.error;
  }
  if (!result.error.empty()) return result;
  result.end_ns = std::max(result.end_ns, job.sent_end_ns);
  const int64_t now_ns = MonotonicNs();
  if (!pacer_.paced_out() && !pacer_.paced_in()) {
    result.end_ns = now_ns;
  } else if (now_ns > result.end_ns) {
    result.lateness_ns = now_ns - result.end_ns;
  } else {
    SleepUntilNs(result.end_ns);
  }
  return result;
}

}  // namespace motley::engine
