// What a worker remembers of the epochs that coordinators gave it: messages that are older are dropped, and what it was given is
// brought back when it dials in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/session/session.h"

namespace motley::worker {

// Not thread-safe. At most kMostSeenEpochs are kept; the one of which nothing was said for the longest time goes first.
class SeenEpochs {
 public:
  // Whose numbers come from now on. Those of another key are kept beside them and fence nothing of this one: a coordinator with
  // an empty store begins at 1.
  void UseKey(const std::string& key_id) { key_id_ = key_id; }
  const std::string& key_id() const { return key_id_; }

  // Of the key in use; 0: none was seen.
  Epoch Newest(const JobId& job) const;
  // An older one changes nothing; an empty token does not replace one.
  void See(const JobId& job, Epoch epoch, const std::string& token);
  // Of all keys, as Hello brings them.
  std::vector<SeenEpoch> All() const;

 private:
  struct Entry {
    Epoch epoch;
    std::string token;
    int64_t said = 0;  // order of the newest words about it
  };
  std::map<std::pair<std::string, JobId>, Entry> entries_;  // by key and job
  std::string key_id_;
  int64_t said_ = 0;
};

}  // namespace motley::worker
