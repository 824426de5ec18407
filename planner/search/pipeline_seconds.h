// How long a step of a pipeline under 1F1B takes, in closed form: what searches over stages compare by.
#pragma once

#include <cstdint>
#include <vector>

namespace motley::planner {

struct PipelineLoad {
  std::vector<double> stage_seconds;  // t: one microbatch through a stage, forward and backward, all its ministages
  std::vector<double> send_seconds;   // l: one microbatch over the border behind each stage but the last, one way
  double link_seconds = 0;            // what the fullest link carries for one microbatch, all borders and both ways together
  int64_t microbatches = 1;           // m
  int64_t ministages = 1;             // v of each stage; more than 1: interleaved
};

// sum t + 2 sum l + (m - 1) P. P, the time between microbatches, is the largest of the fullest link and, over all runs of stages
// i..j,
//     (sum of t over i..j + 2 sum of l inside) / (j - i + 1):
// stage j may not run ahead of what came back to stage i, and 1F1B keeps one microbatch more in flight for each stage before. For
// i = j that is the slowest stage; for two neighbours it shows that 1F1B does not hide the way between them. Interleaved keeps
// two chunks more in flight for each stage before, (sum t + 2 v sum l) / (2 (j - i) + 1), and hides all but 1/v of the ramp
// (Narayanan et al. 2021, section 2.2). O(stages^2).
double PipelineSeconds(const PipelineLoad& load);

}  // namespace motley::planner
