#include "worker/daemon/card_watch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/logging.h"

namespace motley::worker {
namespace {

constexpr int64_t kWorthAReport = 256 << 20;  // of memory that others took or gave back
constexpr int64_t kLargestStatBytes = 4 << 10;
constexpr double kAboutAllWatts = 0.9;
constexpr absl::Duration kStartPatience = absl::Seconds(1);  // a hanging card delays a start by this

// NVIDIA's table of Xid errors, of those after which only a reset helps. Programs' own errors (13, 31, 43, 45) end programs.
constexpr int64_t kUncorrectedXid = 48;
constexpr std::array<std::pair<int64_t, const char*>, 8> kFatalXids = {
    {{kUncorrectedXid, "a memory error that ECC could not correct"},
     {62, "its microcontroller stopped"},
     {64, "a bad row of its memory cannot be retired"},
     {79, "it fell off the bus"},
     {95, "a memory error that ECC could not contain"},
     {119, "its system processor does not answer"},
     {120, "its system processor failed"},
     {140, "a memory error without recovery"}}};

// A rank of this worker. Of a process in another container nothing is known: it is somebody else's.
bool IsOwn(int64_t pid) {
  const std::string stat = ReadSmallFile(absl::StrCat("/proc/", pid, "/stat"), kLargestStatBytes).value_or("");
  // "4711 (a name) S 4710 ...": the name may hold anything.
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return false;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(end + 1), ' ', absl::SkipEmpty());
  return fields.size() > 1 && std::atoll(fields[1].c_str()) == getpid();
}

}  // namespace

std::string LostByXid(int64_t xid, bool contains_errors) {
  if (xid == kUncorrectedXid && contains_errors) return "";  // whether it was contained, 94 or 95 say
  for (const auto& [number, words] : kFatalXids) {
    if (number == xid) return absl::StrCat("GPU failed: ", words, " (Xid ", xid, ")");
  }
  return "";
}

absl::Status CheckRoom(int64_t offered_bytes, const CardRoom& room) {
  if (room.others_bytes < 0) return absl::OkStatus();
  const int64_t left = std::max<int64_t>(0, room.memory_bytes - room.reserved_bytes - room.others_bytes);
  // Plans leave a part of what was offered.
  const auto needed = static_cast<int64_t>((1 - kDefaultMemoryReserve) * static_cast<double>(offered_bytes));
  if (left >= needed) return absl::OkStatus();
  const std::string holders = Holders(room.others);
  return absl::ResourceExhaustedError(absl::StrCat("others hold ", Gibibytes(room.others_bytes),
                                                   " of the card's memory now, and held ", Gibibytes(room.joined_with_bytes),
                                                   " when the worker offered ", Gibibytes(offered_bytes), "; ", Gibibytes(left),
                                                   " are left", holders.empty() ? "" : absl::StrCat(" (", holders, ")"),
                                                   ": end what holds it, or start the worker again, which then offers less"));
}

CardLoad LoadOf(const std::vector<CardSample>& looks, int64_t power_limit_watts) {
  double most_watts = 0;
  for (const CardSample& look : looks) most_watts = std::max(most_watts, look.watts);
  CardLoad load;
  for (const CardSample& look : looks) {
    if (look.watts < kAboutAllWatts * most_watts) continue;
    load.sm_clock_mhz = std::max<int64_t>(0, look.clock_mhz);
    load.watts = std::max(0.0, look.watts);
    load.power_limit_watts = power_limit_watts;
    load.at_power_limit |= (look.slow_downs & nvml::kSwPowerCap) != 0;
    load.slowed_by_heat |= (look.slow_downs & (nvml::kSwThermal | nvml::kHwThermal)) != 0;
    load.slowed_by_hardware |= (look.slow_downs & (nvml::kHwSlowdown | nvml::kHwPowerBrake)) != 0;
  }
  return load;
}

CardWatch::CardWatch(const NvmlLibrary& nvml, const std::vector<OfferedDevice>& devices, CardMetrics& metrics, OnChange on_change,
                     absl::Duration period)
    : nvml_(nvml), metrics_(metrics), on_change_(std::move(on_change)), period_(period) {
  const nvml::Functions& f = nvml_.api();
  if (f.EventSetCreate == nullptr || f.EventSetCreate(&events_) != nvml::kSuccess) events_ = nullptr;
  absl::MutexLock lock(&mutex_);
  for (const OfferedDevice& device : devices) {
    if (device.card_index < 0) continue;
    nvml::DeviceHandle handle = nullptr;
    Card& card = cards_.emplace_back();
    card.device = card.said.device = device.description.id;
    card.said.used_by_others_bytes = card.room.joined_with_bytes = device.description.card.used_by_others_bytes;
    card.power_limit_watts = device.description.card.power_limit_watts;
    const nvml::Return code = f.HandleByIndex(static_cast<unsigned>(device.card_index), &handle);
    if (code != nvml::kSuccess) {
      card.said.lost = nvml_.Words(code);
      metrics_.Set(card.device, CardSample(), /*lost=*/true, 0, 0);
    }
    if (code == nvml::kSuccess && events_ != nullptr && f.RegisterEvents != nullptr) {
      (void)f.RegisterEvents(handle, nvml::kEventXid, events_);
    }
    handles_.push_back(handle);
  }
  thread_ = std::thread([this] { Loop(); });
}

CardWatch::~CardWatch() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
  if (events_ != nullptr && nvml_.api().EventSetFree != nullptr) (void)nvml_.api().EventSetFree(events_);
}

void CardWatch::Loop() {
  while (true) {
    std::vector<Card> cards;
    {
      absl::MutexLock lock(&mutex_);
      changed_.WaitFor(mutex_, period_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || begun_ < wanted_; });
      if (stopping_) return;
      ++begun_;
      cards = cards_;
    }
    const std::vector<Look> looks = TakeLooks(cards);
    // The card's report goes before what its rank's end makes others say.
    for (size_t i = 0; i < cards.size(); ++i) {
      if (cards[i].said.lost.empty() && Use(looks[i], cards[i])) on_change_(cards[i].said);
    }
    {
      absl::MutexLock lock(&mutex_);
      for (size_t i = 0; i < cards.size(); ++i) {
        if (auto load = loads_.find(cards[i].device); load != loads_.end()) load->second.push_back(looks[i].sample);
      }
      cards_ = std::move(cards);
      ended_ = begun_;
    }
    changed_.NotifyAll();
  }
}

// A lost card is not asked again: the answer would be late, and the same.
std::vector<CardWatch::Look> CardWatch::TakeLooks(const std::vector<Card>& cards) {
  std::vector<Look> looks(handles_.size());
  nvml::EventData event = {};
  while (events_ != nullptr && nvml_.api().EventSetWait != nullptr &&
         nvml_.api().EventSetWait(events_, &event, /*timeout_ms=*/0) == nvml::kSuccess) {
    const auto of = std::find(handles_.begin(), handles_.end(), event.device);
    if (of != handles_.end()) looks[static_cast<size_t>(of - handles_.begin())].xids.push_back(static_cast<int64_t>(event.data));
  }
  for (size_t i = 0; i < handles_.size(); ++i) {
    if (!cards[i].said.lost.empty()) continue;
    looks[i].sample = TakeSample(nvml_, handles_[i]);
    if (looks[i].sample.lost.empty()) looks[i].processes = ReadProcesses(nvml_, handles_[i]);
  }
  return looks;
}

bool CardWatch::Use(const Look& look, Card& card) {
  const CardReport before = card.said;
  const CardSample& sample = look.sample;
  card.said.lost = sample.lost;
  for (const int64_t xid : look.xids) {
    LogWarning(absl::StrCat(card.device.value(), ": the driver reports Xid ", xid));
    if (card.said.lost.empty()) card.said.lost = LostByXid(xid, sample.memory_errors.contains);
  }
  const int64_t new_errors = std::max<int64_t>(0, sample.memory_errors.uncorrected - card.errors);
  card.errors += new_errors;
  if (card.said.lost.empty()) card.said.lost = WhyUnusable(sample.memory_errors);
  metrics_.Set(card.device, sample, !card.said.lost.empty(), new_errors, static_cast<int64_t>(look.xids.size()));
  card.said.health = HealthOf(sample);
  if (sample.lost.empty()) {
    card.room.memory_bytes = sample.memory_bytes;
    card.room.reserved_bytes = sample.reserved_bytes;
  }
  card.room.others.clear();
  card.room.others_bytes = -1;
  if (look.processes.ok()) {
    int64_t listed = 0;
    for (const CardProcess& process : *look.processes) {
      if (process.bytes < 0 || IsOwn(process.pid)) continue;
      listed += process.bytes;
      card.room.others.push_back(process);
    }
    if (card.unlisted_bytes < 0) card.unlisted_bytes = std::max<int64_t>(0, card.room.joined_with_bytes - listed);
    card.room.others_bytes = listed + card.unlisted_bytes;
  }
  const int64_t moved = card.room.others_bytes < 0 ? 0 : std::abs(card.room.others_bytes - before.used_by_others_bytes);
  if (moved >= kWorthAReport) card.said.used_by_others_bytes = card.room.others_bytes;
  return card.said.lost != before.lost || card.said.health != before.health || moved >= kWorthAReport;
}

const CardWatch::Card* CardWatch::Find(const DeviceId& device) const {
  const auto card = std::find_if(cards_.begin(), cards_.end(), [&](const Card& each) { return each.device == device; });
  return card == cards_.end() ? nullptr : &*card;
}

std::string CardWatch::Lost(const DeviceId& device) const {
  absl::MutexLock lock(&mutex_);
  const Card* card = Find(device);
  return card == nullptr || card->said.lost.empty() ? "" : absl::StrCat(device.value(), ": ", card->said.lost);
}

std::string CardWatch::LookAgain(const DeviceId& device, absl::Duration limit) {
  {
    absl::MutexLock lock(&mutex_);
    if (Find(device) == nullptr) return "";
    const int64_t wanted = begun_ + 1;
    wanted_ = std::max(wanted_, wanted);
    changed_.NotifyAll();
    changed_.WaitFor(mutex_, limit, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_ >= wanted; });
  }
  return Lost(device);
}

absl::Status CardWatch::MayStart(const DeviceId& device, int64_t offered_bytes) {
  (void)LookAgain(device, kStartPatience);
  absl::MutexLock lock(&mutex_);
  const Card* card = Find(device);
  if (card == nullptr) return absl::OkStatus();
  return card->said.lost.empty() ? CheckRoom(offered_bytes, card->room) : absl::UnavailableError(card->said.lost);
}

void CardWatch::BeginLoad(const DeviceId& device) {
  absl::MutexLock lock(&mutex_);
  if (Find(device) != nullptr) loads_[device].clear();
}

CardLoad CardWatch::EndLoad(const DeviceId& device) {
  absl::MutexLock lock(&mutex_);
  const auto load = loads_.extract(device);
  return load.empty() ? CardLoad() : LoadOf(load.mapped(), Find(device)->power_limit_watts);
}

std::vector<CardReport> CardWatch::reports() const {
  absl::MutexLock lock(&mutex_);
  std::vector<CardReport> reports;
  for (const Card& card : cards_) reports.push_back(card.said);
  return reports;
}

}  // namespace motley::worker
