#include "worker/daemon/seen_epochs.h"

#include <algorithm>

namespace motley::worker {

Epoch SeenEpochs::Newest(const JobId& job) const {
  const auto it = entries_.find({key_id_, job});
  return it == entries_.end() ? Epoch() : it->second.epoch;
}

void SeenEpochs::See(const JobId& job, Epoch epoch, const std::string& token) {
  Entry& entry = entries_[{key_id_, job}];
  entry.said = ++said_;
  if (epoch > entry.epoch) entry = {epoch, token, entry.said};
  if (epoch == entry.epoch && !token.empty()) entry.token = token;
  if (entries_.size() <= kMostSeenEpochs) return;
  entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                  [](const auto& a, const auto& b) { return a.second.said < b.second.said; }));
}

std::vector<SeenEpoch> SeenEpochs::All() const {
  std::vector<SeenEpoch> all;
  for (const auto& [key, entry] : entries_) all.push_back({key.second, entry.epoch, entry.token, key.first});
  return all;
}

}  // namespace motley::worker
