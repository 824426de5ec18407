#include "coordinator/client/say_while.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace motley::client {

SayWhile::SayWhile(std::ostream& out, std::string what, absl::Duration first, absl::Duration pause)
    : thread_([this, &out, what = std::move(what), first, pause, start = absl::Now()] {
        for (absl::Duration wait = first; !ended_.WaitForNotificationWithTimeout(wait); wait = pause) {
          out << what << absl::StrFormat(" (%.0f s so far)", absl::ToDoubleSeconds(absl::Now() - start)) << std::endl;
        }
      }) {}

SayWhile::~SayWhile() {
  ended_.Notify();
  thread_.join();
}

}  // namespace motley::client
