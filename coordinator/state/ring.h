// A list with a cursor, bounded by entries and by bytes: the oldest entries fall out, a reader that remembers its cursor goes on
// where it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace motley::coordinator {

// Not thread-safe. Cursors increase by one and start above `base`, so that those of an earlier life of the process lie below.
template <typename T>
class Ring {
 public:
  Ring(size_t capacity, size_t capacity_bytes, int64_t base)
      : capacity_(capacity), capacity_bytes_(capacity_bytes), first_(base + 1) {}

  // The cursor of the new entry, which takes `bytes` with all that it holds. The newest one stays however large it is.
  int64_t Add(T value, size_t bytes) {
    entries_.push_back({std::move(value), bytes});
    bytes_ += bytes;
    while (entries_.size() > capacity_ || (bytes_ > capacity_bytes_ && entries_.size() > 1)) {
      bytes_ -= entries_.front().bytes;
      entries_.pop_front();
      ++first_;
    }
    return newest();
  }
  int64_t newest() const { return first_ + static_cast<int64_t>(entries_.size()) - 1; }
  size_t size() const { return entries_.size(); }
  size_t bytes() const { return bytes_; }
  // The oldest kept entry after `cursor`, or null. `found` becomes its cursor.
  const T* After(int64_t cursor, int64_t* found) const {
    if (entries_.empty() || cursor >= newest()) return nullptr;
    *found = cursor < first_ ? first_ : cursor + 1;
    return &entries_[*found - first_].value;
  }

 private:
  struct Entry {
    T value;
    size_t bytes;
  };
  size_t capacity_, capacity_bytes_;
  size_t bytes_ = 0;  // of all entries
  int64_t first_;     // cursor of entries_.front()
  std::deque<Entry> entries_;
};

}  // namespace motley::coordinator
