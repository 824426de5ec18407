// Time and peak memory of one piece of work, in a process of its own: a peak is of the process, and the next piece should not
// inherit it. POSIX.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>

namespace motley::bench {

struct Measured {
  double seconds = 0;   // the shortest run
  double peak_mib = 0;  // resident, of the process
  std::string error;    // empty = it worked
};

// Runs `work` until `most_runs` or two seconds are over. `work` returns an error's text or nothing. After `most_seconds` of
// processor time it is stopped, with an error that says so.
inline Measured MeasureApart(const std::function<std::string()>& work, int most_runs = 20, unsigned most_seconds = 300) {
  Measured measured;
  int ends[2];
  if (pipe(ends) != 0) return {0, 0, "pipe: no file descriptor"};
  const pid_t child = fork();
  if (child < 0) return {0, 0, "fork: no process"};
  if (child == 0) {
    const rlimit limit{most_seconds, most_seconds};
    setrlimit(RLIMIT_CPU, &limit);
    const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
    double best = 1e30;
    std::string error;
    const double first = now();
    for (int run = 0; run < most_runs && error.empty() && (run == 0 || now() - first < 2); ++run) {
      const double begin = now();
      error = work();
      best = std::min(best, now() - begin);
    }
    error.resize(std::min<size_t>(error.size(), 2000));  // fits the pipe
    const bool written = write(ends[1], &best, sizeof best) == sizeof best &&
                         write(ends[1], error.data(), error.size()) == static_cast<ssize_t>(error.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  char text[2001];
  ssize_t size = read(ends[0], &measured.seconds, sizeof measured.seconds);
  if (size == sizeof measured.seconds) {
    while ((size = read(ends[0], text, sizeof text)) > 0) measured.error.append(text, static_cast<size_t>(size));
  } else {
    measured.seconds = most_seconds;
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    measured.error = signal == SIGXCPU || signal == SIGKILL ? "no answer in " + std::to_string(most_seconds) + " s"
                                                            : "ended by signal " + std::to_string(signal);
  }
  close(ends[0]);
  measured.peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  return measured;
}

}  // namespace motley::bench
