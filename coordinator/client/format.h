// Numbers, times and tables for people.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "proto/motley/v1/job.pb.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::client {

std::string FormatBytes(int64_t bytes);       // "39.1 GiB"
std::string FormatSeconds(double seconds);    // "0.512 s", "3 min 20 s", "2 h 05 min"
std::string FormatTime(int64_t unix_ms);      // "2026-03-01 12:34:56", local; "-" when 0
std::string FormatState(v1::JobState state);  // "running"
bool HasEnded(v1::JobState state);

// "step 12/200  loss 3.1234  |g| 1.23  lr 2.00e-03  2048 tokens/s  memory 61 %  step 0.512 s (predicted 0.500 s, +2.4 %)  ..."
std::string StepLine(const v1::StepRecord& step, int64_t steps);
// "2026-03-01 12:34:56  node_lost  n2  lease ran out"
std::string EventLine(const v1::Event& event);

// Left-aligned columns as wide as their widest cell. What came from elsewhere neither makes rows nor steers the terminal.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void Add(std::vector<std::string> row);
  void Print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace motley::client
