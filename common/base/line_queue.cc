#include "common/base/line_queue.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/steady_condition.h"

namespace motley {
namespace {

constexpr absl::Duration kLongestEnd = absl::Seconds(1);

// What cannot be written is nobody's to tell.
void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd waits = {fd, POLLOUT, 0};
      poll(&waits, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

struct LineQueue::Shared {
  struct Line {
    int64_t number = 0;
    std::string text;
  };

  Shared(int to, size_t bound, std::function<std::string(int64_t)> of_dropped)
      : fd(to), max_bytes(bound), dropped_line(std::move(of_dropped)) {}

  const int fd;
  const size_t max_bytes;
  const std::function<std::string(int64_t)> dropped_line;
  SteadyCondition changed;
  absl::Mutex mutex;
  std::deque<Line> usual ABSL_GUARDED_BY(mutex), kept ABSL_GUARDED_BY(mutex);
  size_t bytes ABSL_GUARDED_BY(mutex) = 0;
  int64_t added ABSL_GUARDED_BY(mutex) = 0, dropped ABSL_GUARDED_BY(mutex) = 0;
  bool writing ABSL_GUARDED_BY(mutex) = false, ended ABSL_GUARDED_BY(mutex) = false;

  bool empty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return usual.empty() && kept.empty(); }

  std::string Pop(std::deque<Line>& from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::string text = std::move(from.front().text);
    from.pop_front();
    bytes -= text.size();
    return text;
  }

  // The next to write, behind the word of what was dropped before it.
  std::optional<std::string> Take() {
    absl::MutexLock lock(&mutex);
    writing = false;
    changed.NotifyAll();
    while (empty() && !ended) {
      changed.WaitFor(mutex, absl::InfiniteDuration(),
                      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return !empty() || ended; });
    }
    if (empty()) return std::nullopt;
    writing = true;
    const bool next_is_usual = kept.empty() || (!usual.empty() && usual.front().number < kept.front().number);
    std::string text = dropped > 0 ? dropped_line(std::exchange(dropped, 0)) : "";
    return text += Pop(next_is_usual ? usual : kept);
  }
};

LineQueue::LineQueue(int fd, size_t max_bytes, std::function<std::string(int64_t dropped)> dropped_line)
    : shared_(std::make_shared<Shared>(fd, max_bytes, std::move(dropped_line))) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([shared = shared_] {
    while (const auto text = shared->Take()) WriteAll(shared->fd, *text);
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LineQueue::~LineQueue() {
  Flush(kLongestEnd);
  absl::MutexLock lock(&shared_->mutex);
  shared_->ended = true;
  shared_->changed.NotifyAll();
}

void LineQueue::Add(std::string line, bool keep) {
  absl::MutexLock lock(&shared_->mutex);
  shared_->bytes += line.size();
  (keep ? shared_->kept : shared_->usual).push_back({shared_->added++, std::move(line)});
  while (shared_->bytes > shared_->max_bytes && !shared_->empty()) {
    shared_->Pop(shared_->usual.empty() ? shared_->kept : shared_->usual);
    ++shared_->dropped;
  }
  shared_->changed.NotifyAll();
}

bool LineQueue::Flush(absl::Duration patience) {
  absl::MutexLock lock(&shared_->mutex);
  return shared_->changed.WaitFor(shared_->mutex, patience, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared_->mutex) {
    return shared_->empty() && !shared_->writing;
  });
}

}  // namespace motley
