#include "worker/engine/transport/hand_over.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/transport/ring_stream.h"

namespace motley::engine {
namespace {

// The sender's offer and the receiver's credit.
struct Terms {
  uint32_t sequence;
  uint32_t reserved;
  int64_t bytes;
  int64_t ready_ns;
};

// From the receiver, when all is in.
struct Acknowledgement {
  uint32_t sequence;
  uint32_t reserved;
  int64_t end_ns;
};

template <typename T>
absl::Status SendStruct(const HandOverPath& path, const T& message) {
  const absl::Status status = path.peer.socket->Send({Part(&message, sizeof(message))}, path.patience);
  return status.ok() ? status : Lost(path.peer, status);
}

template <typename T>
absl::Status ReceiveStruct(const HandOverPath& path, T& message) {
  const absl::Status status = path.peer.socket->Receive({Part(&message, sizeof(message))}, path.patience);
  return status.ok() ? status : Lost(path.peer, status);
}

bool IsPaced(const HandOverPath& path) {
  return path.slowest_bytes_per_second > 0 || path.pacer.paced_out() || path.pacer.paced_in();
}

// When the hand-over begins: both ends are ready. Said before it is asked, so that both see a difference.
absl::StatusOr<int64_t> AgreeOnTerms(const HandOverPath& path, uint32_t sequence, int64_t bytes, int64_t ready_ns) {
  // On another machine the arrival of the terms is what counts.
  if (!path.shared_clock) SleepUntilNs(ready_ns);
  MOTLEY_RETURN_IF_ERROR(SendStruct(path, Terms{sequence, 0, bytes, ready_ns}));
  Terms theirs;
  MOTLEY_RETURN_IF_ERROR(ReceiveStruct(path, theirs));
  if (theirs.sequence != sequence || theirs.bytes != bytes) {
    const auto text = [](uint32_t number, int64_t size) {
      return absl::StrCat("the terms of hand-over ", number, " of ", size, " bytes");
    };
    return DifferentPrograms(path.peer, text(theirs.sequence, theirs.bytes), text(sequence, bytes));
  }
  return std::max(ready_ns, path.shared_clock ? theirs.ready_ns : MonotonicNs());
}

// The sender chooses the segments' sizes.
absl::Status CheckHeader(const HandOverPath& path, const SegmentHeader& header, uint32_t sequence, uint32_t index,
                         int64_t left_bytes) {
  const int64_t most = std::min(left_bytes, kMaxSegmentBytes);
  if (header.sequence == sequence && header.index == index && header.bytes > 0 && header.bytes <= most) return absl::OkStatus();
  return DifferentPrograms(path.peer,
                           absl::StrCat("segment ", header.index, " of ", header.bytes, " bytes of hand-over ", header.sequence),
                           absl::StrCat("segment ", index, " of 1 to ", most, " bytes of hand-over ", sequence));
}

}  // namespace

absl::StatusOr<TransferTimes> HandOverSender::Send(const char* data, int64_t bytes, int64_t ready_ns,
                                                   const std::function<void()>& progress) {
  WakePunctually();
  ++sequence_;
  TransferTimes times;
  MOTLEY_ASSIGN_OR_RETURN(times.begin_ns, AgreeOnTerms(path_, sequence_, bytes, ready_ns));
  MOTLEY_ASSIGN_OR_RETURN(times.end_ns, SendSegments(data, bytes, times.begin_ns, progress));
  Acknowledgement ack;
  MOTLEY_RETURN_IF_ERROR(ReceiveStruct(path_, ack));
  if (ack.sequence != sequence_) {
    return DifferentPrograms(path_.peer, absl::StrCat("the end of hand-over ", ack.sequence),
                             absl::StrCat("that of ", sequence_));
  }
  times.end_ns = std::max(times.end_ns, path_.shared_clock ? ack.end_ns : MonotonicNs());
  AwaitEnd(times, IsPaced(path_));
  return times;
}

// When the last segment left.
absl::StatusOr<int64_t> HandOverSender::SendSegments(const char* data, int64_t bytes, int64_t begin_ns,
                                                     const std::function<void()>& progress) {
  const int64_t by_path = SegmentBytes(bytes, 1, path_.slowest_bytes_per_second);
  int64_t end_ns = begin_ns;
  uint32_t index = 0;
  for (int64_t offset = 0; offset < bytes;) {
    const int64_t segment_bytes = std::min(std::max(by_path, ring_segment_bytes_.load()), bytes - offset);
    const LinkClock::Slot sent = path_.pacer.paced_out() ? path_.pacer.ReserveOut(segment_bytes, begin_ns) : SlotNow();
    SleepUntilNs(sent.end_ns);
    const SegmentHeader header{sent, sequence_, index++, static_cast<uint32_t>(segment_bytes), 0};
    const absl::Status status =
        path_.peer.socket->Send({Part(&header, sizeof(header)), Part(data + offset, segment_bytes)}, path_.patience);
    if (!status.ok()) return Lost(path_.peer, status);
    end_ns = std::max(end_ns, sent.end_ns);
    offset += segment_bytes;
    if (progress) progress();
  }
  return end_ns;
}

void HandOverSender::Abort() { path_.peer.socket->Shutdown(); }

absl::StatusOr<TransferTimes> HandOverReceiver::Receive(char* data, int64_t bytes, int64_t ready_ns,
                                                        const std::function<void()>& progress) {
  ++sequence_;
  TransferTimes times;
  MOTLEY_ASSIGN_OR_RETURN(times.begin_ns, AgreeOnTerms(path_, sequence_, bytes, ready_ns));
  MOTLEY_ASSIGN_OR_RETURN(times.end_ns, ReceiveSegments(data, bytes, times.begin_ns, progress));
  // With one clock the sender waits until the end that it is told; on another machine it ends when it is told.
  const Acknowledgement ack{sequence_, 0, times.end_ns};
  if (path_.shared_clock) MOTLEY_RETURN_IF_ERROR(SendStruct(path_, ack));
  AwaitEnd(times, IsPaced(path_));
  if (!path_.shared_clock) MOTLEY_RETURN_IF_ERROR(SendStruct(path_, ack));
  return times;
}

// When the last segment was in.
absl::StatusOr<int64_t> HandOverReceiver::ReceiveSegments(char* data, int64_t bytes, int64_t begin_ns,
                                                          const std::function<void()>& progress) {
  int64_t end_ns = begin_ns;
  uint32_t index = 0;
  for (int64_t offset = 0; offset < bytes;) {
    SegmentHeader header;
    MOTLEY_RETURN_IF_ERROR(ReceiveStruct(path_, header));
    MOTLEY_RETURN_IF_ERROR(CheckHeader(path_, header, sequence_, index++, bytes - offset));
    const absl::Status filled = path_.peer.socket->Receive({Part(data + offset, header.bytes)}, path_.patience);
    if (!filled.ok()) return Lost(path_.peer, filled);
    const LinkClock::Slot sent = path_.shared_clock ? header.sent : SlotNow();
    end_ns = std::max(end_ns, path_.pacer.ReserveIn(header.bytes, sent).end_ns);
    offset += header.bytes;
    if (progress) progress();
  }
  return end_ns;
}

void HandOverReceiver::Abort() { path_.peer.socket->Shutdown(); }

}  // namespace motley::engine
