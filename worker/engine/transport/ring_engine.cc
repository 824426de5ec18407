#include "worker/engine/transport/ring_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/transport/half_types.h"

namespace motley::engine {
namespace {

absl::Status CheckHeader(const SegmentHeader& header, uint64_t sequence, int64_t index, int64_t bytes, const Peer& sender) {
  if (header.sequence == static_cast<uint32_t>(sequence) && header.index == index && header.bytes == bytes)
    return absl::OkStatus();
  const auto text = [](uint32_t collective, int64_t segment, int64_t size) {
    return absl::StrCat("segment ", segment, " of ", size, " bytes of collective ", collective);
  };
  return DifferentPrograms(sender, text(header.sequence, header.index, header.bytes),
                           text(static_cast<uint32_t>(sequence), index, bytes));
}

// A receiver's word to its sender, before the first segment: it is in this collective, and since when.
struct Credit {
  uint32_t sequence;
  uint32_t reserved;
  int64_t ready_ns;
};

template <typename T>
void Add(char* to, const char* from, int64_t bytes) {
  T* sum = reinterpret_cast<T*>(to);
  const T* term = reinterpret_cast<const T*>(from);
  for (int64_t i = 0, n = bytes / static_cast<int64_t>(sizeof(T)); i < n; ++i) sum[i] += term[i];
}

// Nothing for kCopy: what is copied was received in place.
void Add(RingCombine combine, char* to, const char* from, int64_t bytes) {
  switch (combine) {
    case RingCombine::kCopy:
      return;
    case RingCombine::kAddFloat32:
      return Add<float>(to, from, bytes);
    case RingCombine::kAddFloat64:
      return Add<double>(to, from, bytes);
    case RingCombine::kAddFloat16:
      return Add<Float16>(to, from, bytes);
    case RingCombine::kAddBFloat16:
      return Add<BFloat16>(to, from, bytes);
  }
}

}  // namespace

RingCombine SumOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return RingCombine::kAddFloat32;
    case DType::kFloat64:
      return RingCombine::kAddFloat64;
    case DType::kFloat16:
      return RingCombine::kAddFloat16;
    case DType::kBFloat16:
      return RingCombine::kAddBFloat16;
  }
  return RingCombine::kAddFloat32;
}

RingEngine::RingEngine(Neighbour left, Neighbour right, LinkPacer& pacer, absl::Duration patience)
    : left_(std::move(left)),
      right_(std::move(right)),
      pacer_(pacer),
      patience_(patience),
      terms_(kMaxSegmentBytes),
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
  left_.peer.socket->Shutdown();
  right_.peer.socket->Shutdown();
  absl::MutexLock lock(&mutex_);
  changed_.SignalAll();
}

void RingEngine::Fail(Job& job, const absl::Status& error) {
  {
    absl::MutexLock lock(&mutex_);
    if (job.error.ok()) job.error = error;
  }
  Abort();
}

absl::StatusOr<int64_t> RingEngine::MeetRight(uint64_t sequence, int64_t ready_ns) {
  // On another machine the arrival of the word is what counts.
  if (!left_.shared_clock) SleepUntilNs(ready_ns);
  const Credit mine{static_cast<uint32_t>(sequence), 0, ready_ns};
  const absl::Status sent = left_.peer.socket->Send({Part(&mine, sizeof(mine))}, patience_);
  if (!sent.ok()) return Lost(left_.peer, sent);
  Credit theirs;
  const absl::Status met = right_.peer.socket->Receive({Part(&theirs, sizeof(theirs))}, patience_);
  if (!met.ok()) return Lost(right_.peer, met);
  if (theirs.sequence != mine.sequence) {
    return DifferentPrograms(right_.peer, absl::StrCat("the begin of collective ", theirs.sequence),
                             absl::StrCat("that of ", mine.sequence));
  }
  return std::max(ready_ns, right_.shared_clock ? theirs.ready_ns : MonotonicNs());
}

void RingEngine::SenderLoop() {
  WakePunctually();
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
    if (const absl::Status sent = SendAll(*job, sequence); !sent.ok()) Fail(*job, sent);
    absl::MutexLock lock(&mutex_);
    job->sender_done = true;
    changed_.SignalAll();
  }
}

absl::Status RingEngine::SendAll(Job& job, uint64_t sequence) {
  const RingStream& stream = *job.stream;
  for (int64_t i = 0; i < stream.send_end; ++i) {
    int64_t ready_ns;
    {
      absl::MutexLock lock(&mutex_);
      while (job.available <= i && !aborted_) changed_.Wait(&mutex_);
      ready_ns = job.ready_ns[i];
    }
    if (aborted_) return Aborted();
    const Segment& segment = stream.segments[i];
    const LinkClock::Slot sent = pacer_.paced_out() ? pacer_.ReserveOut(segment.bytes, ready_ns) : SlotNow();
    SleepUntilNs(sent.end_ns);
    SegmentHeader header{sent, static_cast<uint32_t>(sequence), static_cast<uint32_t>(i), static_cast<uint32_t>(segment.bytes),
                         0};
    const absl::Status status = right_.peer.socket->Send(
        {Part(&header, sizeof(header)), Part(job.array + segment.offset_bytes, segment.bytes)}, patience_);
    if (!status.ok()) return Lost(right_.peer, status);
    job.sent_end_ns = std::max(job.sent_end_ns, sent.end_ns);
  }
  return absl::OkStatus();
}

absl::Status RingEngine::Receive(Job& job, RingCombine combine, uint64_t sequence, const std::function<void()>& progress,
                                 int64_t* end_ns) {
  const RingStream& stream = *job.stream;
  for (int64_t i = stream.recv_begin; i < stream.size(); ++i) {
    const Segment& segment = stream.segments[i];
    char* const place = job.array + segment.offset_bytes;
    SegmentHeader header;
    const absl::Status status = left_.peer.socket->Receive({Part(&header, sizeof(header))}, patience_);
    if (!status.ok()) return Lost(left_.peer, status);
    MOTLEY_RETURN_IF_ERROR(CheckHeader(header, sequence, i - stream.recv_begin, segment.bytes, left_.peer));
    char* const to = combine == RingCombine::kCopy ? place : terms_.data();
    const absl::Status filled = left_.peer.socket->Receive({Part(to, segment.bytes)}, patience_);
    if (!filled.ok()) return Lost(left_.peer, filled);
    Add(combine, place, terms_.data(), segment.bytes);
    const LinkClock::Slot sent = left_.shared_clock ? header.sent : SlotNow();
    const int64_t in_ns = pacer_.ReserveIn(segment.bytes, sent).end_ns;
    *end_ns = std::max(*end_ns, in_ns);
    {
      absl::MutexLock lock(&mutex_);
      job.ready_ns[i] = std::max(job.ready_ns[i], in_ns);
      job.available = i + 1;
      changed_.SignalAll();
    }
    if (progress) progress();
  }
  return absl::OkStatus();
}

absl::StatusOr<TransferTimes> RingEngine::Pass(const RingStream& stream, char* array, RingCombine combine, int64_t ready_ns,
                                               const std::function<void()>& progress) {
  Job job;
  job.stream = &stream;
  job.array = array;
  job.available = stream.recv_begin;
  uint64_t sequence;
  {
    absl::MutexLock lock(&mutex_);
    sequence = ++sequence_;
  }
  const absl::StatusOr<int64_t> begin_ns = MeetRight(sequence, ready_ns);
  if (!begin_ns.ok()) {
    Fail(job, begin_ns.status());
    return job.error;
  }
  job.ready_ns.assign(stream.size(), *begin_ns);
  {
    absl::MutexLock lock(&mutex_);
    job_ = &job;
    changed_.SignalAll();
  }
  TransferTimes times;
  times.end_ns = ready_ns;
  if (const absl::Status received = Receive(job, combine, sequence, progress, &times.end_ns); !received.ok()) Fail(job, received);
  {
    absl::MutexLock lock(&mutex_);
    while (!job.sender_done) changed_.Wait(&mutex_);
    job_ = nullptr;
    MOTLEY_RETURN_IF_ERROR(job.error);
  }
  times.end_ns = std::max(times.end_ns, job.sent_end_ns);
  AwaitEnd(times, pacer_.paced_out() || pacer_.paced_in());
  return times;
}

}  // namespace motley::engine
