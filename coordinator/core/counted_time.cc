#include "coordinator/core/counted_time.h"

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/logging.h"
#include "common/base/sha256.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kMostTimeBytes = int64_t{16} << 20;
constexpr absl::Duration kBetweenSaves = absl::Hours(1);
constexpr absl::string_view kTimeFormat = "motley-time-1";
constexpr absl::string_view kTimeSum = "sha256 ";

std::string TimeLine(absl::string_view name, absl::Duration time) {
  return absl::StrCat(name, " ", absl::ToInt64Milliseconds(time), "\n");
}

}  // namespace

std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

CountedTime::CountedTime(std::string path, const Clock& clock)
    : path_(std::move(path)), clock_(clock), since_(clock.Now()), saved_(since_ - kBetweenSaves) {}

void CountedTime::Load(std::string boot) {
  boot_ = std::move(boot);
  const absl::StatusOr<std::string> text = ReadSmallFile(path_, kMostTimeBytes);
  if (absl::IsNotFound(text.status())) return;
  const absl::Status status = text.ok() ? Parse(*text) : text.status();
  if (!status.ok()) {
    LogError(absl::StrCat("finished jobs are kept as if they ended now, because ", path_,
                          " cannot be used: ", std::string(status.message())));
  }
}

absl::Status CountedTime::Parse(std::string_view whole) {
  const absl::string_view text(whole.data(), whole.size());
  const absl::Status wrong = absl::DataLossError("it is not what was written");
  const size_t sum = text.rfind(kTimeSum);
  if (sum == text.npos || text.substr(sum) != absl::StrCat(kTimeSum, Sha256Hex(whole.substr(0, sum)), "\n")) return wrong;
  std::vector<std::pair<std::string, int64_t>> lines;
  std::string boot;
  for (const absl::string_view line : absl::StrSplit(text.substr(0, sum), '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    int64_t ms = 0;
    if (words.first == "boot") {
      boot = words.second;
    } else if (absl::SimpleAtoi(words.second, &ms)) {
      lines.emplace_back(words.first, ms);
    } else {
      return wrong;
    }
  }
  if (lines.size() < 4 || lines[0] != std::pair(std::string(kTimeFormat), int64_t{0})) return wrong;
  const absl::Duration counted = absl::Milliseconds(lines[1].second), steady = absl::Milliseconds(lines[2].second);
  const bool same_start = !boot_.empty() && boot == boot_ && steady <= clock_.Now();
  counted_ = counted + (same_start ? clock_.Now() - steady : absl::ZeroDuration());
  since_ = clock_.Now();
  has_gap_ = !same_start;
  wall_went_back_ = has_gap_ && clock_.WallNow() < absl::FromUnixMillis(lines[3].second);
  for (size_t i = 4; i < lines.size(); ++i) begun_[lines[i].first] = absl::Milliseconds(lines[i].second);
  return absl::OkStatus();
}

absl::Duration CountedTime::AgeOf(const std::string& thing, absl::Duration at_first) {
  return Now() - begun_.try_emplace(thing, Now() - at_first).first->second;
}

void CountedTime::IsAtLeast(const std::string& thing, absl::Duration age) {
  absl::Duration& begun = begun_.try_emplace(thing, Now() - age).first->second;
  begun = std::min(begun, Now() - age);
}

void CountedTime::Keep(std::string_view kind, const std::function<bool(const std::string&)>& exists) {
  std::erase_if(begun_, [&](const auto& entry) { return entry.first.starts_with(kind) && !exists(entry.first); });
}

absl::Status CountedTime::Save() {
  saved_ = clock_.Now();
  std::string text =
      absl::StrCat(TimeLine(kTimeFormat, absl::ZeroDuration()), TimeLine("counted", Now()), TimeLine("steady", clock_.Now()),
                   TimeLine("wall", clock_.WallNow() - absl::UnixEpoch()), "boot ", boot_, "\n");
  for (const auto& [thing, begun] : begun_) absl::StrAppend(&text, TimeLine(thing, begun));
  absl::StrAppend(&text, kTimeSum, Sha256Hex(text), "\n");
  return ReplaceFileDurably(path_, text, 0600);
}

void CountedTime::SaveNowAndThen() {
  if (clock_.Now() - saved_ < kBetweenSaves) return;
  if (const absl::Status status = Save(); !status.ok()) LogError(std::string(status.message()));
}

}  // namespace motley::coordinator
