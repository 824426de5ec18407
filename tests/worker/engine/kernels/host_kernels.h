// Every kernel as the host compiles it, by name: what a fake driver launches.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace motley::kernels {

struct HostKernel {
  std::function<void(const void* arguments)> run;  // one thread, on the emulated card
  size_t argument_bytes = 0;
  unsigned threads = 0;      // of a block, as it is compiled for
  bool any_threads = false;  // any whole number of warps, at most so many
};
// "swiglu_forward bfloat16". Null: there is none.
const HostKernel* FindHostKernel(const std::string& name);

}  // namespace motley::kernels
