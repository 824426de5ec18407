// How many threads the calling thread's operators compute with.
#pragma once

#include <ATen/Parallel.h>

namespace motley::engine {

// The newest number becomes that of threads that say none. A thread takes the process's at its first look, whatever it has set
// before: so it looks first.
inline void SetThreads(int threads) {
  at::get_num_threads();
  at::set_num_threads(threads);
}

}  // namespace motley::engine
