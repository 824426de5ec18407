// The test program's main: with --fd or a question to ranks it is a fake rank, with the worker's word a storage check, a files
// process or a carry's, otherwise it runs the tests.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "tests/worker/daemon/fake_engine.h"
#include "worker/daemon/carry_child.h"
#include "worker/daemon/files_child.h"
#include "worker/daemon/rank_session.h"
#include "worker/daemon/storage_checker.h"

int main(int argc, char** argv) {
  using namespace motley;
  std::signal(SIGPIPE, SIG_IGN);
  if (argc > 1 && std::strcmp(argv[1], worker::kStorageChildWord) == 0) return worker::StorageChildMain(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], worker::kFilesChildWord) == 0) return worker::FilesChildMain(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], worker::kCarryChildWord) == 0) return worker::CarryChildMain(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "--check") == 0) return 0;
  if (argc > 1 && std::strcmp(argv[1], "--nccl") == 0) return 69;
  if (argc > 2 && std::strcmp(argv[1], "--fd") == 0) {
    worker::RankSession::Options options;
    options.on_orphaned = [] { _exit(75); };
    const SystemClock clock;
    worker::RankSession session(
        std::atoi(argv[2]), [](engine::RankHost& host) { return std::make_unique<worker::FakeEngine>(host); }, clock, options);
    return session.Serve().ok() ? 0 : 70;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
