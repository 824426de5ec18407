#include "coordinator/client/format.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/clean_text.h"

namespace motley::client {

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

std::string FormatTime(int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(unix_ms), absl::LocalTimeZone());
}

std::string FormatState(v1::JobState state) {
  std::string name = v1::JobState_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "JOB_STATE_"));
}

bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_STOPPED;
}

// Less is the noise of every host.
constexpr double kShownLatenessSeconds = 0.05;

std::string StepLine(const v1::StepRecord& s, int64_t steps) {
  std::string line = absl::StrFormat("step %d/%d  loss %.4f  |g| %.3g  lr %.2e  %.0f tokens/s  memory %.0f %%  step %s", s.step(),
                                     steps, s.loss(), s.grad_norm(), s.lr(), s.tokens_per_second(), s.peak_memory_share() * 100,
                                     FormatSeconds(s.step_seconds()));
  if (s.predicted_step_seconds() > 0) {
    absl::StrAppend(&line, absl::StrFormat(" (predicted %s, %+.1f %%)", FormatSeconds(s.predicted_step_seconds()),
                                           (s.step_seconds() / s.predicted_step_seconds() - 1) * 100));
  }
  absl::StrAppend(&line, "  elapsed ", FormatSeconds(s.elapsed_seconds()), "  left ", FormatSeconds(s.remaining_seconds()));
  if (s.lateness_seconds() > kShownLatenessSeconds) absl::StrAppend(&line, "  host late ", FormatSeconds(s.lateness_seconds()));
  if (s.has_validation_loss()) absl::StrAppend(&line, absl::StrFormat("  validation loss %.4f", s.validation_loss()));
  return line;
}

std::string EventLine(const v1::Event& event) {
  std::string line = absl::StrCat(FormatTime(event.unix_ms()), "  ", event.kind());
  const std::string& where = event.device().empty() ? event.node() : event.device();
  if (!where.empty()) absl::StrAppend(&line, "  ", where);
  return CleanLine(absl::StrCat(line, "  ", event.message()));
}

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = CleanLine(cell);
  rows_.push_back(std::move(row));
}

void Table::Print(std::ostream& out) const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  }
}

}  // namespace motley::client
