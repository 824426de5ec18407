// The signals of a daemon: which of them ask it to end, and which are errors of a call and nothing else.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace motley {

// Blocks what asks to end, and `more`, for sigtimedwait: SIGTERM, SIGINT and SIGHUP (a terminal that closes), the last one unless
// who started the daemon has it ignored (nohup). In this thread and in those that it starts, so before there is another.
sigset_t BlockStopSignals(std::initializer_list<int> more = {});

// Whether one that comes after another asks to wait no longer. A closing terminal says SIGHUP twice and means it once.
bool AsksToHurry(int number);

// A lost peer (SIGPIPE) and a file that may not grow (SIGXFSZ: LimitFSIZE, ulimit -f) are errors of the write, which says where,
// not the end of the process. Programs that it starts have it so, too.
void IgnoreSignalsOfWrites();

}  // namespace motley
