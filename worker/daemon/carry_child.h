// Gives a file of this node's disk to somebody behind the coordinator: a process of its own for each carry, so that a disk that
// hangs, or a reader that is slow, holds up nothing else. docs/inside/local-storage.md
#pragma once

namespace motley::worker {

// The word by which the worker's program knows that it is such a child, and what it then does; its exit status. Behind the word:
// [files] local, the job's id and uid, the checkpoint's name, the file's ("": its manifest), an input's id and those that stay
// ("": it gives; else it takes that input), where that may lie here, too, and [files] roots. On kChildSocket come and go frames
// of v1::CarryMessage; it ends with the socket.
inline constexpr char kCarryChildWord[] = "carry-child";
int CarryChildMain(int argc, char** argv);

}  // namespace motley::worker
