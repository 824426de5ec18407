// Inputs of jobs on this node's disk, beneath [files] local. docs/inside/inputs.md
//
//   inputs/ID.json    the list (common/inputs/input_list.h)
//   inputs/ID/NAME    the file, or the folder, when it is whole; nothing in it changes any more
//   inputs/ID.part    while it comes
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/inputs/input_list.h"

namespace motley::worker {

inline constexpr char kPartOfInputSuffix[] = ".part";

// Of a file, or of a folder with all beneath it, as it is allocated; 0: it is not there.
int64_t BytesOnDisk(const std::string& path);

std::string InputsFolder(const std::string& local);
// What the job's path is here.
std::string LocalPathOf(const std::string& local, const JobInput& input);
std::string InputListPath(const std::string& local, const std::string& id);
std::string PartOfInput(const std::string& local, const std::string& id);

// Those of these that are whole here.
std::vector<std::string> WholeInputs(const std::string& local, const std::vector<std::string>& ids);
// That somebody wants these now: they stay for some minutes at least.
void NoteWanted(const std::string& local, const std::vector<std::string>& ids);
// What one that comes has taken of the disk already; of all.
int64_t BytesOfPartInput(const std::string& local, const std::string& id);
int64_t BytesOfPartInputs(const std::string& local);
// A file of a whole one, for reading: "tokens/part-0.bin"; empty: its list. No link is followed. INVALID_ARGUMENT: no id, or a
// name that leads elsewhere; NOT_FOUND; Fault::kStorage: it cannot be read now. No error names a folder of this machine.
absl::StatusOr<FileDescriptor> OpenInputFile(const std::string& local, const std::string& id, const std::string& file);
// The same of a file of one that comes here.
absl::StatusOr<FileDescriptor> OpenPartOfInput(const std::string& local, const std::string& id, const std::string& file);

// Removes whole and half inputs that are neither `kept` nor wanted of late, the oldest first, until the file system has so many
// bytes more than the tenth that stays free. RESOURCE_EXHAUSTED: that would not make room; nothing is removed, and it says how
// many lack.
absl::Status MakeRoomForInput(const std::string& local, int64_t bytes, const std::set<std::string>& kept);
// The same where `free` bytes more than the tenth are free now.
absl::Status MakeRoomForInput(const std::string& local, int64_t free, int64_t bytes, const std::set<std::string>& kept);

}  // namespace motley::worker
