// How fast copies may go beside a job that trains: as fast as its steps do not notice. By feedback, since nobody knows which
// links are bound by what.
#pragma once

#include <cstdint>
#include <vector>

namespace motley::coordinator {

class CopyRate {
 public:
  // A generation: what earlier steps took says nothing of the next ones.
  void Begin() { *this = CopyRate(); }
  // A step, and whether copies were under way beside it.
  void OnStep(double seconds, bool copying);
  // Each node's limit. Where no step was seen without copies they nearly stop for a few.
  int64_t bytes_per_second() const;

 private:
  int64_t bytes_per_second_ = 10'000'000;
  bool pausing_ = false;
  std::vector<double> without_, with_;  // the newest steps; with copies at this rate
};

}  // namespace motley::coordinator
