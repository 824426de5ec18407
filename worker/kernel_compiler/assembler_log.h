// What the assembler within NVRTC says of each kernel: registers, and whether they were enough.
#pragma once

#include <string>
#include <vector>

namespace motley::kernel_compiler {

struct KernelUse {
  std::string symbol;
  int registers = 0;
  int stack_bytes = 0, spill_bytes = 0;  // of a thread, in memory
  int shared_bytes = 0;                  // of a block, known when it was compiled
};

// Of a log of `--ptxas-options=-v`.
std::vector<KernelUse> UsesIn(const std::string& log);

// What makes them slow, or not run on every card; a sentence each.
std::vector<std::string> Faults(const std::vector<KernelUse>& uses);

}  // namespace motley::kernel_compiler
