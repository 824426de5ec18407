// Whether a process that says nothing works: what the kernel counts of it.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace motley::worker {

struct ProcessSigns {
  char state = '?';  // of its first thread, as ps shows it: 'R', 'S', 'D', 'T'; '?': not known
  int64_t processor_ticks = 0;
  int64_t faults_from_disk = 0;  // libraries are read so
  int64_t bytes_read = 0;        // by calls

  // By a signal or a debugger.
  bool stopped() const { return state == 'T' || state == 't'; }
};

// All unknown when there is no such process, or /proc does not say it.
ProcessSigns SignsOf(pid_t pid);

// From one look to the next. Waiting for a disk or a share counts nothing: it may last for ever.
bool Moved(const ProcessSigns& before, const ProcessSigns& after);

}  // namespace motley::worker
