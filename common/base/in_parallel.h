// Independent pieces of work on the machine's cores.
#pragma once

#include <cstddef>
#include <functional>

namespace motley {

// Calls work(0) ... work(count - 1), each once, on at most `threads` threads (0: as many as the machine has cores; the caller's
// is one of them), and returns when all have ended. Pieces begin in this order. A piece writes its result to a place of its own
// and reads nothing that another one writes, so the outcome does not depend on the number of threads. `work` does not throw; a
// piece may call InParallel itself.
void InParallel(size_t count, const std::function<void(size_t)>& work, size_t threads = 0);

}  // namespace motley
