// Who made the checkpoints in a job's folder that are not the job's own: for the person who decides which one it goes on from.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"

namespace motley::coordinator {

class OtherMakers {
 public:
  // Of one maker the newest comes first.
  void Add(const CheckpointManifest& manifest, const std::string& folder);
  // "job 'demo' (uid 0f3c...), newest step 40, saved 2026-03-01 12:34 UTC; job 'old', ... and 3 more".
  std::string Text() const;
  size_t size() const { return makers_.size(); }
  // What the file `adopt` holds for the first of them.
  std::string FirstWord() const;

 private:
  struct Maker {
    std::string name, word, newest;
  };
  std::vector<Maker> makers_;
};

}  // namespace motley::coordinator
