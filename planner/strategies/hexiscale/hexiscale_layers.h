// How many layers each stage of a pipeline gets: the inner problem of HexiScale (arXiv 2409.01143 appendix A), stage order and
// tensor-parallel degrees given. Exact.
//
//   minimise   sum_j (l_j a_j + f_j) + (n - 1) max_j (l_j a_j + f_j)      over all stages j = 1 .. S
//   subject to sum_j l_j = L,  1 <= l_j <= most_j.
//
// Equation 9 of the paper takes the maximum over j = 2 .. S and so leaves out stage 1: a plan with everything on stage 1 would
// look pipelined. Here it is over all stages. Symbols: a = seconds of a layer for one microbatch, f = seconds that do not depend
// on the layers (embedding, head, the hop to the next stage), n = microbatches.
#pragma once

#include <cstdint>
#include <vector>

namespace motley::planner {

struct StageCost {
  double layer_seconds = 0;  // a, forward, backward and recomputation
  double fixed_seconds = 0;  // f
  int64_t most_layers = 0;   // by memory; 0: it may not be there at all
};

struct LayerSplit {
  std::vector<int64_t> layers;  // by stage; empty: they do not fit
  double seconds = 0;           // the objective
};

// For a bound T on the slowest stage the sum is least when the fastest stages take as many layers as T and memory allow; only the
// T that some stage takes with some number of layers matter, from the least feasible one on. O(S) for each T tried; stops when n
// - 1 times T and the fastest stage's sum are worse than the best, after one or two of them where n is large.
LayerSplit SplitLayersExactly(const std::vector<StageCost>& stages, int64_t layers, int64_t microbatches);

// What no split comes below when a stage takes for a layer what the faster of the two costs says. O(S).
double LeastPipelineSeconds(const std::vector<StageCost>& stages, const std::vector<StageCost>& others, int64_t layers,
                            int64_t microbatches);

// The objective of a given split.
double PipelineSeconds(const std::vector<StageCost>& stages, const std::vector<int64_t>& layers, int64_t microbatches);

}  // namespace motley::planner
