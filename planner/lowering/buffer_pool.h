// The buffers of a stage while a pass goes over its steps: which unit is where. Part of the passes of parameters and gradients.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/program/program.h"

namespace motley::planner {

class BufferPool {
 public:
  // `in_turn`: buffers that units share, one after the other, before one is used again.
  explicit BufferPool(int32_t in_turn) : in_turn_(in_turn) {}

  struct Place {
    UnitBuffer buffer;
    int32_t unit = -1;       // that is in it
    bool stays = false;      // nobody else takes it
    int32_t last_step = -1;  // that used it
    bool busy = false;       // not to be taken now
  };

  Place& operator[](int32_t buffer) { return places_[buffer]; }
  int32_t size() const { return static_cast<int32_t>(places_.size()); }

  // A buffer for `unit` alone. `home`: it is there between steps of training, too.
  int32_t Keep(int32_t unit, int64_t elements, bool home) { return Add({{elements, home ? unit : -1}, unit, true}); }
  // For the shard that ranks keep of `unit` among the group: nobody computes with it. `elements`: of the whole unit.
  int32_t KeepShard(int32_t unit, int64_t elements, int32_t group) { return Add({{elements, unit, 1, group}, -1, true}); }
  // The buffer that holds the unit; -1 = none.
  int32_t Find(int32_t unit) const {
    const auto at = std::find_if(places_.begin(), places_.end(), [unit](const Place& place) { return place.unit == unit; });
    return at == places_.end() ? -1 : static_cast<int32_t>(at - places_.begin());
  }
  // The buffer whose last use is longest ago; a new one while there are too few in turn, or none is to be had.
  int32_t Take(int32_t unit, int64_t elements) {
    int32_t best = -1, in_turn = 0;
    for (int32_t b = 0; b < size(); ++b) {
      in_turn += places_[b].stays ? 0 : 1;
      const bool is_free = !places_[b].stays && !places_[b].busy;
      if (is_free && (best < 0 || places_[b].last_step < places_[best].last_step)) best = b;
    }
    if (best < 0 || in_turn < in_turn_) return Add({{elements}, unit});
    places_[best].unit = unit;
    places_[best].buffer.elements = std::max(places_[best].buffer.elements, elements);
    return best;
  }

  std::vector<UnitBuffer> Buffers() const {
    std::vector<UnitBuffer> buffers;
    for (const Place& place : places_) buffers.push_back(place.buffer);
    return buffers;
  }

 private:
  int32_t Add(const Place& place) {
    places_.push_back(place);
    return size() - 1;
  }

  const int32_t in_turn_;
  std::vector<Place> places_;
};

}  // namespace motley::planner
