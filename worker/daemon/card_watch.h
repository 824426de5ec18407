// Looks at this node's cards every few seconds: what they do as metrics, what goes wrong as reports, and a card that cannot be
// used any more as the cause of what happens to its rank.
//
// One thread asks NVML, because a card that dies may keep a caller for long. The public methods may be called from anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/steady_condition.h"
#include "common/session/profile.h"
#include "common/session/session.h"
#include "worker/daemon/card_metrics.h"
#include "worker/daemon/nvml_cards.h"
#include "worker/daemon/offer.h"

namespace motley::worker {

// Whether a plan's memory still fits beside what others hold. RESOURCE_EXHAUSTED says who holds how much.
struct CardRoom {
  int64_t memory_bytes = 0, reserved_bytes = 0;  // of the card
  int64_t joined_with_bytes = 0;                 // that others held when it was offered
  int64_t others_bytes = -1;                     // that they hold now; -1 = not known
  std::vector<CardProcess> others;
};
absl::Status CheckRoom(int64_t offered_bytes, const CardRoom& room);

// What the driver's error number means for the card: why it cannot be used any more; empty: a program's error, or none of the
// card's, or one that a card which contains memory errors lives with.
std::string LostByXid(int64_t xid, bool contains_errors = false);

// Of looks at a card under load: the last one at which it drew about as much as it ever did. What slowed it down counts from all
// such.
CardLoad LoadOf(const std::vector<CardSample>& looks, int64_t power_limit_watts);

class CardWatch {
 public:
  using OnChange = std::function<void(const CardReport&)>;  // from the watch's thread

  // Of those of `devices` that are cards. `nvml` and `metrics` must outlive it.
  CardWatch(const NvmlLibrary& nvml, const std::vector<OfferedDevice>& devices, CardMetrics& metrics, OnChange on_change,
            absl::Duration period = absl::Seconds(5));
  ~CardWatch();

  // Why the device's card cannot be used any more, with the device's name: "n1/gpu0: GPU is lost (fell off the bus)". Empty: it
  // can, or it is no card. As of the newest look.
  std::string Lost(const DeviceId& device) const;
  // The same after a new look, which is waited for so long.
  std::string LookAgain(const DeviceId& device, absl::Duration limit);
  // Before a rank starts: UNAVAILABLE when the card is lost, RESOURCE_EXHAUSTED when others have taken of its memory what was
  // offered.
  absl::Status MayStart(const DeviceId& device, int64_t offered_bytes);
  // What the looks between the two said of a card that is being measured; of what is no card, nothing.
  void BeginLoad(const DeviceId& device);
  CardLoad EndLoad(const DeviceId& device);
  // The newest of what was reported, for a hello.
  std::vector<CardReport> reports() const;

 private:
  struct Card {
    DeviceId device;
    CardReport said;  // last
    CardRoom room;
    int64_t errors = 0;  // uncorrected ones, counted so far
    int64_t power_limit_watts = 0;
    // Of what others held at the join, when no rank was here yet, what no list of processes names (another container's, say); it
    // is taken to stay. -1 = not looked yet.
    int64_t unlisted_bytes = -1;
  };
  // What NVML said of one card.
  struct Look {
    CardSample sample;
    absl::StatusOr<std::vector<CardProcess>> processes = absl::UnknownError("");
    std::vector<int64_t> xids;  // since the look before
  };

  void Loop();
  std::vector<Look> TakeLooks(const std::vector<Card>& cards);
  // False: nothing that is worth a report.
  bool Use(const Look& look, Card& card);
  const Card* Find(const DeviceId& device) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const NvmlLibrary& nvml_;
  CardMetrics& metrics_;
  const OnChange on_change_;
  const absl::Duration period_;
  std::vector<nvml::DeviceHandle> handles_;  // like cards_; constant once the thread runs, like the next one
  nvml::EventSetHandle events_ = nullptr;    // null: this driver has none

  mutable absl::Mutex mutex_;
  SteadyCondition changed_;
  std::vector<Card> cards_ ABSL_GUARDED_BY(mutex_);
  std::map<DeviceId, std::vector<CardSample>> loads_ ABSL_GUARDED_BY(mutex_);      // of those that are being measured
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0, ended_ ABSL_GUARDED_BY(mutex_) = 0;  // looks
  int64_t wanted_ ABSL_GUARDED_BY(mutex_) = 1;  // the next look begins at once while fewer have begun
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace motley::worker
