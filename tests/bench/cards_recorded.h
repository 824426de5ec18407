// What runs on the card while a step runs, as CUPTI records it: seconds and launches of each kernel, by its name.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/bench_report.h"

namespace motley::engine {

// By libtorch's own recorder, which knows all streams of the process. One at a time. On a host it records what this thread's
// operators take, which tells no more than whether it works.
class RecordedKernels {
 public:
  explicit RecordedKernels(bool card) : card_(card) {
    namespace profiler = torch::autograd::profiler;
    const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
    const std::set<profiler::ActivityType> activities = {card_ ? profiler::ActivityType::CUDA : profiler::ActivityType::CPU};
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(config, activities);
  }

  // Of `steps` steps; ends the record.
  void Report(int64_t steps, bench::Report* report) {
    struct Sum {
      double seconds = 0;
      int64_t launches = 0;
    };
    std::map<std::string, Sum> by_name;
    const auto recorded = torch::autograd::profiler::disableProfiler();
    for (const auto& event : recorded->events()) {
      if ((event.deviceType() == at::kCUDA) != card_) continue;
      Sum& sum = by_name[event.name()];
      sum.seconds += static_cast<double>(event.durationNs()) * 1e-9;
      ++sum.launches;
    }
    std::vector<std::pair<std::string, Sum>> longest(by_name.begin(), by_name.end());
    std::sort(longest.begin(), longest.end(), [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    const auto per_step = [&](double all) { return all / static_cast<double>(steps); };
    for (const auto& [name, sum] : longest) {
      report->Add(absl::StrCat("kernel ", per_step(static_cast<double>(sum.launches)), " x ", name), 1e3 * per_step(sum.seconds),
                  "ms a step");
    }
  }

 private:
  const bool card_;
};

}  // namespace motley::engine
