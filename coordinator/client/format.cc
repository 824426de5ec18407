#include "coordinator/client/format.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/clean_text.h"
#include "common/session/loss_text.h"
#include "coordinator/client/screen.h"

namespace motley::client {
namespace {

constexpr size_t kLongestBar = 30, kShortestBar = 5;
// What a glance at a moving line takes in: "13 s", "3 min 20 s".
std::string Roughly(double seconds) { return seconds < 60 ? absl::StrFormat("%.0f s", seconds) : FormatSeconds(seconds); }

}  // namespace

std::string FormatBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string FormatSeconds(double seconds) {
  if (!(seconds >= 0)) return "-";
  if (seconds < 60) return absl::StrFormat(seconds < 10 ? "%.3f s" : "%.1f s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %02d min", whole / 3600, whole / 60 % 60);
}

std::string FormatRate(double per_second) {
  if (per_second < 1000) return absl::StrFormat("%.0f tokens/s", per_second);
  if (per_second < 1e6) return absl::StrFormat("%.1fk tokens/s", per_second / 1e3);
  return absl::StrFormat("%.1fM tokens/s", per_second / 1e6);
}

std::string HowFarOf(int64_t bytes, int64_t all, absl::Duration since) {
  const double rate = static_cast<double>(bytes) / std::max(absl::ToDoubleSeconds(since), 1e-3);
  return absl::StrCat(100 * bytes / std::max<int64_t>(all, 1), " % of ", FormatBytes(all), ", ",
                      FormatBytes(static_cast<int64_t>(rate)), " a second, ",
                      FormatSeconds(static_cast<double>(all - bytes) / std::max(rate, 1.0)), " left");
}

std::string FormatTime(int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S %Z", absl::FromUnixMillis(unix_ms), absl::LocalTimeZone());
}

std::string FormatState(v1::JobState state) {
  std::string name = v1::JobState_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "JOB_STATE_"));
}

bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_STOPPED;
}

std::string LiveLine(const v1::StepRecord& s, int64_t steps, size_t width) {
  const auto line = [&](const char* of_plan) {
    std::string text =
        absl::StrFormat("step %d/%d  loss %s  %s", s.step(), steps, LossText(s.loss(), 2), FormatRate(s.tokens_per_second()));
    if (s.predicted_step_seconds() > 0) {
      absl::StrAppend(&text, absl::StrFormat("  %+.1f %%", (s.step_seconds() / s.predicted_step_seconds() - 1) * 100), of_plan);
    }
    absl::StrAppend(&text, "  left ", Roughly(std::max(0.0, s.remaining_seconds())));
    return text;
  };
  std::string text = line(" of plan");
  if (text.size() >= width) text = line("");
  // Brackets, two spaces, and the last column free: some terminals break the line when it is written.
  const size_t rest = width > text.size() + 5 ? std::min(kLongestBar, width - text.size() - 5) : 0;
  if (rest < kShortestBar) return Cut(text, width - std::min<size_t>(width, 1));
  const double part = steps > 0 ? std::clamp(static_cast<double>(s.step()) / static_cast<double>(steps), 0.0, 1.0) : 0;
  const auto done = static_cast<size_t>(part * static_cast<double>(rest));
  std::string bar(done, '=');
  if (done < rest) bar += '>';
  bar.resize(rest, ' ');
  return absl::StrCat("[", bar, "]  ", text);
}

std::string ValidationText(const v1::StepRecord& s) {
  return motley::ValidationText(s.validation_loss(),
                                s.has_validation_bits_per_byte() ? std::optional(s.validation_bits_per_byte()) : std::nullopt);
}

// Less is the noise of every host.
constexpr double kShownLatenessSeconds = 0.05;

std::string StepLine(const v1::StepRecord& s, int64_t steps) {
  std::string line = absl::StrFormat("step %d/%d  loss %s  |g| %s  lr %.2e  %s  memory %.0f %%  step %s", s.step(), steps,
                                     LossText(s.loss()), NormText(s.grad_norm()), s.lr(), FormatRate(s.tokens_per_second()),
                                     s.peak_memory_share() * 100, FormatSeconds(s.step_seconds()));
  if (s.predicted_step_seconds() > 0) {
    absl::StrAppend(&line, absl::StrFormat(" (predicted %s, %+.1f %%)", FormatSeconds(s.predicted_step_seconds()),
                                           (s.step_seconds() / s.predicted_step_seconds() - 1) * 100));
  }
  absl::StrAppend(&line, "  elapsed ", FormatSeconds(s.elapsed_seconds()), "  left ", FormatSeconds(s.remaining_seconds()));
  if (s.lateness_seconds() > kShownLatenessSeconds) absl::StrAppend(&line, "  host late ", FormatSeconds(s.lateness_seconds()));
  if (s.loss_scale() > 0) absl::StrAppend(&line, s.skipped() ? "  skipped at loss scale " : "  loss scale ", s.loss_scale());
  if (s.has_validation_loss()) absl::StrAppend(&line, "  validation loss ", ValidationText(s));
  return line;
}

std::string EventLine(const v1::Event& event) {
  std::string line = absl::StrCat(FormatTime(event.unix_ms()), "  ", event.kind());
  const std::string& where = event.device().empty() ? event.node() : event.device();
  if (!where.empty()) absl::StrAppend(&line, "  ", where);
  return CleanLine(absl::StrCat(line, "  ", event.message()));
}

}  // namespace motley::client
