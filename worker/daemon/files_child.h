// The worker's files process: it says what this node's disk has of jobs' checkpoints, gives it to other nodes, and brings what
// ranks go on from. A process of its own, so that a disk that hangs stops no session. docs/inside/local-storage.md
#pragma once

namespace motley::worker {

// The word by which the worker's program knows that it is such a child, and what it then does; its exit status. Behind the word:
// [files] local, the data address, the node's name. On kChildSocket come frames of v1::CoordinatorMessage (holdings, start and
// stop) and go frames of v1::WorkerMessage (holdings and how far a start's files are); it ends with the socket.
inline constexpr char kFilesChildWord[] = "files-child";
int FilesChildMain(int argc, char** argv);

}  // namespace motley::worker
