// A bounded list with a cursor: the oldest entries fall out, a reader that remembers its cursor goes on where it was.
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
  Ring(size_t capacity, int64_t base) : capacity_(capacity), first_(base + 1) {}

  // The cursor of the new entry.
  int64_t Add(T value) {
    entries_.push_back(std::move(value));
    if (entries_.size() > capacity_) {
      entries_.pop_front();
      ++first_;
    }
    return newest();
  }
  int64_t newest() const { return first_ + static_cast<int64_t>(entries_.size()) - 1; }
  size_t size() const { return entries_.size(); }
  // The oldest kept entry after `cursor`, or null. `found` becomes its cursor.
  const T* After(int64_t cursor, int64_t* found) const {
    if (entries_.empty() || cursor >= newest()) return nullptr;
    *found = cursor < first_ ? first_ : cursor + 1;
    return &entries_[static_cast<size_t>(*found - first_)];
  }

 private:
  size_t capacity_;
  int64_t first_;  // cursor of entries_.front()
  std::deque<T> entries_;
};

}  // namespace motley::coordinator
