#include "coordinator/state/refused_joins.h"

#include <algorithm>

namespace motley::coordinator {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1), kSayEvery = absl::Minutes(1);
constexpr size_t kMostHosts = 256;
constexpr int kMostSaid = 10;

}  // namespace

bool RefusedJoins::IsTooEager(const std::string& host, absl::Duration now) const {
  const auto known = hosts_.find(host);
  return known != hosts_.end() && now - known->second.second < kSecond && known->second.in_second >= kMostInASecond;
}

bool RefusedJoins::Note(const std::string& host, absl::Duration now) {
  if (!hosts_.contains(host) && hosts_.size() >= kMostHosts) {
    hosts_.erase(std::min_element(hosts_.begin(), hosts_.end(),
                                  [](const auto& a, const auto& b) { return a.second.second < b.second.second; }));
  }
  Host& entry = hosts_[host];
  if (entry.in_second == 0 || now - entry.second >= kSecond) entry.second = now, entry.in_second = 0;
  ++entry.in_second;
  if (now - entry.said < kSayEvery) return false;
  if (now - minute_ >= kSayEvery) minute_ = now, said_in_minute_ = 0;
  if (++said_in_minute_ > kMostSaid) return false;
  entry.said = now;
  return true;
}

}  // namespace motley::coordinator
