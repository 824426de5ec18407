// Numbers, times and lines for people.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "proto/motley/v1/job.pb.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::client {

std::string FormatBytes(int64_t bytes);     // "39.1 GiB"
std::string FormatSeconds(double seconds);  // "0.512 s", "3 min 20 s", "2 h 05 min"
std::string FormatRate(double per_second);  // "950 tokens/s", "1.6k tokens/s", "2.1M tokens/s"
// Of bytes that move: "47 % of 1.0 GiB, 112.0 MiB a second, 5 s left".
std::string HowFarOf(int64_t bytes, int64_t all, absl::Duration since);
std::string FormatTime(int64_t unix_ms);      // "2026-03-01 12:34:56 CET", local; "-" when 0
std::string FormatState(v1::JobState state);  // "running"
bool HasEnded(v1::JobState state);

// Of a step that has one: "3.2000 (perplexity 24.53; 4.62 bits a byte)".
std::string ValidationText(const v1::StepRecord& step);
// "step 12/200  loss 3.1234  |g| 1.23  lr 2.00e-03  2.0k tokens/s  memory 61 %  step 0.512 s (predicted 0.500 s, +2.4 %)  ..."
std::string StepLine(const v1::StepRecord& step, int64_t steps);
// What changes from step to step, for a line that is written again:
// "[=====>      ]  step 17/40  loss 3.34  1.6k tokens/s  +0.3 %  left 13 s". The percentage is of the prediction.
std::string LiveLine(const v1::StepRecord& step, int64_t steps, size_t width);
// "2026-03-01 12:34:56 CET  node_lost  n2  lease ran out"
std::string EventLine(const v1::Event& event);

}  // namespace motley::client
