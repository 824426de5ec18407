// The coordinator ends by _exit, as a search or a backup may still run on a thread that nobody waits for (core/loop.h). So do its
// tests: such a thread would read what the end of the process has destroyed.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

namespace motley::coordinator {
namespace {

class EndAtOnce : public testing::Environment {
 public:
  // Registered last, it is called first.
  void TearDown() override {
    on_exit(
        [](int status, void*) {
          std::fflush(nullptr);
          _exit(status);
        },
        nullptr);
  }
};

[[maybe_unused]] const testing::Environment* const kEndAtOnce = testing::AddGlobalTestEnvironment(new EndAtOnce);

}  // namespace
}  // namespace motley::coordinator
