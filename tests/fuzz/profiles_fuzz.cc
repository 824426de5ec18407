// Measured latencies: Motley's own form and the published one.
#include "planner/costs/latency_book.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  (void)planner::LatencyBook::Parse(fuzz::Text(data, size), "profiles.json");
  return 0;
}
