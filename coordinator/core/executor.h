// Work that takes long (planning, digesting checkpoints) runs beside the loop; its continuation runs on it.
#pragma once

#include <functional>

namespace motley::coordinator {

class Executor {
 public:
  virtual ~Executor() = default;
  // `work` runs on another thread and must touch only what it owns; then `done` runs on the loop. In order of the calls.
  virtual void Run(std::function<void()> work, std::function<void()> done) = 0;
};

}  // namespace motley::coordinator
