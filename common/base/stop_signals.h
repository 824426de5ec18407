// The signals of a daemon: which of them ask it to end, and which are errors of a call and nothing else.
#pragma once

#include <signal.h>

namespace motley {

// Of no meaning here, and the end of a process that does not take them. Batch systems send them before the time is over
// (Slurm's --signal=USR1), people by mistake.
inline constexpr int kSignalsWithoutMeaning[] = {SIGUSR1, SIGUSR2, SIGALRM};

// Blocks what asks to end, for sigtimedwait and signalfd: SIGTERM, SIGINT; and, unless who started the daemon has them ignored
// (nohup, trap ''), SIGHUP (a terminal that closes) and those without a meaning. In this thread and in those that it starts. One
// that is there already, as a library's may be, hands what it is sent on to this thread.
sigset_t BlockStopSignals();

// Whether one that comes after another asks to wait no longer: SIGTERM and SIGINT. A closing terminal says SIGHUP twice and means
// it once; the others are said to many processes at once.
bool AsksToHurry(int number);

// A lost peer (SIGPIPE) and a file that may not grow (SIGXFSZ: LimitFSIZE, ulimit -f) are errors of the write, which says where,
// not the end of the process. Programs that it starts have it so, too.
void IgnoreSignalsOfWrites();

}  // namespace motley
