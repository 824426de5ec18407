#include "worker/daemon/outbox.h"

#include <algorithm>
#include <utility>

namespace motley::worker {

void Outbox::Push(v1::WorkerMessage message) {
  std::lock_guard<std::mutex> lock(mutex_);
  messages_.push_back(std::move(message));
  TrimLocked();
  changed_.notify_one();
}

void Outbox::PutBack(v1::WorkerMessage message) {
  std::lock_guard<std::mutex> lock(mutex_);
  messages_.push_front(std::move(message));
  TrimLocked();
}

void Outbox::TrimLocked() {
  for (const auto kind : {v1::WorkerMessage::kLog, v1::WorkerMessage::kStepReport}) {
    if (messages_.size() <= capacity_) return;
    auto oldest = std::find_if(messages_.begin(), messages_.end(),
                               [kind](const v1::WorkerMessage& message) { return message.message_case() == kind; });
    if (oldest == messages_.end()) continue;
    messages_.erase(oldest);
    ++dropped_;
  }
}

std::optional<v1::WorkerMessage> Outbox::Pop(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [this] { return woken_ || !messages_.empty(); });
  woken_ = false;
  if (messages_.empty()) return std::nullopt;
  v1::WorkerMessage message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

void Outbox::Wake() {
  std::lock_guard<std::mutex> lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

size_t Outbox::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return messages_.size();
}

size_t Outbox::dropped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

}  // namespace motley::worker
