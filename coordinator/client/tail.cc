#include "coordinator/client/tail.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clean_text.h"
#include "coordinator/client/whole_number.h"

namespace motley::client {

absl::StatusOr<absl::Time> ParseSince(const std::string& text, absl::Time now, absl::TimeZone zone) {
  absl::Duration ago;
  if (absl::ParseDuration(text, &ago) && ago >= absl::ZeroDuration()) return now - ago;
  absl::Time time;
  for (const char* format : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", absl::RFC3339_full}) {
    if (absl::ParseTime(format, text, zone, &time, nullptr)) return time;
  }
  return absl::InvalidArgumentError(absl::StrCat(Quoted(text),
                                                 " is no time: write how long ago, such as 10m or 2h30m, or when, "
                                                 "such as 2026-03-01 or \"2026-03-01 12:34:56\""));
}

void AddTailFlags(CLI::App& app, TailFlags* flags) {
  app.add_flag("-f,--follow", flags->follow, "keep printing what is new");
  app.add_option("-n,--lines", flags->lines, "only the newest so many of what is there")->type_name("N")->check(WholeFrom(0));
  app.add_option_function<std::string>(
         "--since",
         [flags](const std::string& text) {
           const absl::StatusOr<absl::Time> since = ParseSince(text, absl::Now(), absl::LocalTimeZone());
           if (!since.ok()) throw CLI::ValidationError("--since", std::string(since.status().message()));
           flags->since_ms = absl::ToUnixMillis(*since);
         },
         "only what is newer: 10m, 2h30m, 2026-03-01, \"2026-03-01 12:34:56\"")
      ->type_name("TIME");
}

}  // namespace motley::client
