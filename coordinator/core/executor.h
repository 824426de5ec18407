// Work that takes long (planning, digesting checkpoints) runs beside the loop; its continuation runs on it.
#pragma once

#include <functional>
#include <utility>

namespace motley::coordinator {

class Executor {
 public:
  virtual ~Executor() = default;
  // `work` runs on another thread and must touch only what it owns; then `done` runs on the loop. In order of the calls.
  virtual void Run(std::function<void()> work, std::function<void()> done) = 0;
  // The same for what no job waits for: it holds up nothing that Run was given.
  virtual void RunAside(std::function<void()> work, std::function<void()> done) { Run(std::move(work), std::move(done)); }
  // The same for what may never end, on a share that does not answer, say: it holds up nothing at all, and nobody waits for it at
  // the process's end; then `done` does not run.
  virtual void RunApart(std::function<void()> work, std::function<void()> done) { Run(std::move(work), std::move(done)); }
};

}  // namespace motley::coordinator
