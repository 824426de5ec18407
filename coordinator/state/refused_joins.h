// Machines that were refused as they wanted to join, by address: who tries often is not listened to for a while, and is said
// once.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"

namespace motley::coordinator {

// A plain value. Times are steady.
class RefusedJoins {
 public:
  // So many in a second and the address is not listened to until the second is over.
  static constexpr int kMostInASecond = 10;

  bool IsTooEager(const std::string& host, absl::Duration now) const;
  // Whether people are to be told: once a minute for an address, and of ten addresses a minute.
  bool Note(const std::string& host, absl::Duration now);

 private:
  struct Host {
    absl::Duration second;  // its begin
    int in_second = 0;
    absl::Duration said = -absl::InfiniteDuration();
  };
  std::map<std::string, Host> hosts_;                  // a few hundred at most
  absl::Duration minute_ = -absl::InfiniteDuration();  // its begin
  int said_in_minute_ = 0;
};

}  // namespace motley::coordinator
