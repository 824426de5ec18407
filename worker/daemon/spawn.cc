#include "worker/daemon/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/stop_signals.h"
#include "worker/daemon/child_environment.h"

namespace motley::worker {
namespace {

constexpr int kFirstFreeFd = 10;  // above all that the child renumbers
constexpr off_t kLinkClockBytes = 1 << 16;

// No string, whose making may change errno.
absl::Status Errno(const char* what) { return absl::ErrnoToStatus(errno, what); }

// Only async-signal-safe calls: other threads of the daemon may hold any lock at the fork.
[[noreturn]] void ExecChild(const char* program, char* const* argv, char* const* environment, int socket, int output,
                            const SharedMemory& memory, int null, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGTERM, SIGINT, SIGPIPE, SIGHUP}) signal(number, SIG_DFL);
  // Batch systems send these to all processes of a job; a rank ends when its worker says so.
  for (int number : kSignalsWithoutMeaning) signal(number, SIG_IGN);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(75);  // it died before the line above
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  dup2(socket, kChildSocket);
  if (memory.link_clock >= 0) dup2(memory.link_clock, kChildLinkClock);
  if (memory.known_parts >= 0) {
    dup2(memory.known_parts, kChildKnownParts);
  } else {
    close(kChildKnownParts);
  }
  close_range(kChildKnownParts + 1, ~0U, 0);
  // MKL, which libtorch loads, ends a process whose folder is gone: that in which somebody started the worker by hand.
  char too_short[1];
  if (syscall(SYS_getcwd, too_short, sizeof(too_short)) < 0 && errno == ENOENT && chdir("/") != 0) _exit(71);
  const rlimit no_core_files = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core_files);
  execve(program, argv, environment);
  _exit(126);
}

absl::StatusOr<UniqueFd> HighCopy(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd));
  if (!copy.valid()) return Errno("cannot copy a descriptor for the rank");
  return copy;
}

absl::Status CheckProgram(const std::string& program) {
  if (access(program.c_str(), X_OK) == 0) return absl::OkStatus();
  const int why = errno;
  return absl::ErrnoToStatus(why, absl::StrCat("cannot run '", program, "' (worker.rank_binary names the rank's program)"));
}

}  // namespace

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

absl::StatusOr<UniqueFd> NewLinkClock() {
  UniqueFd fd(memfd_create("motley-link-clock", MFD_CLOEXEC));
  if (!fd.valid()) return Errno("cannot make shared memory for the emulated links");
  if (ftruncate(fd.get(), kLinkClockBytes) != 0) return Errno("cannot size the shared memory of the emulated links");
  return fd;
}

absl::StatusOr<UniqueFd> NewKnownParts() {
  UniqueFd fd(memfd_create("motley-known-parts", MFD_CLOEXEC));
  if (!fd.valid()) return Errno("cannot make shared memory for what is compared of the data");
  return fd;
}

absl::StatusOr<SpawnedProcess> Spawn(const std::string& program, const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& variables, const SharedMemory& memory) {
  if (absl::Status status = CheckProgram(program); !status.ok()) return status;
  int sockets[2], pipes[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return Errno("cannot make the rank's socket");
  UniqueFd ours(sockets[0]), theirs(sockets[1]);
  if (pipe2(pipes, O_CLOEXEC) != 0) return Errno("cannot make the pipe of the rank's output");
  UniqueFd read_end(pipes[0]), write_end(pipes[1]);
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid()) return Errno("cannot open /dev/null for the rank");
  absl::StatusOr<UniqueFd> socket = HighCopy(theirs.get()), output = HighCopy(write_end.get()), in = HighCopy(null.get());
  if (!socket.ok()) return socket.status();
  if (!output.ok()) return output.status();
  if (!in.ok()) return in.status();
  absl::StatusOr<UniqueFd> clock = UniqueFd(), known = UniqueFd();
  if (memory.link_clock >= 0) clock = HighCopy(memory.link_clock);
  if (memory.known_parts >= 0) known = HighCopy(memory.known_parts);
  if (!clock.ok()) return clock.status();
  if (!known.ok()) return known.status();
  const SharedMemory high = {clock->get(), known->get()};

  const std::vector<std::string> given = ChildEnvironment(environ, variables);
  std::vector<char*> argv = {const_cast<char*>(program.c_str())}, environment;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  for (const std::string& variable : given) environment.push_back(const_cast<char*>(variable.c_str()));
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Errno("cannot start another process for a rank");
  if (pid == 0)
    ExecChild(program.c_str(), argv.data(), environment.data(), socket->get(), output->get(), high, in->get(), parent);

  fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  return SpawnedProcess{pid, std::move(ours), std::move(read_end)};
}

}  // namespace motley::worker
