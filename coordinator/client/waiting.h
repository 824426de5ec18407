// What is going on, once it takes long: on a terminal one line that is written again, else a line for each stage.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "coordinator/client/command.h"

namespace motley::client {

class Waiting {
 public:
  explicit Waiting(Context& context);
  ~Waiting() { Clear(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // `doing`: what stands before its first comma is the stage.
  void Show(const std::string& doing);
  void Clear();

 private:
  Context& context_;
  const absl::Time begun_;
  std::string said_;
  bool live_ = false;
};

}  // namespace motley::client
