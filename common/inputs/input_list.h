// What an input is made of: a file, or a folder with what lies beneath it, each file with the SHA-256 of every 4 MiB. Its id is
// the SHA-256 of this list's text, so whoever has the id can verify every byte, whoever gives it. docs/inside/inputs.md
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "common/job/job_input.h"

namespace motley {

inline constexpr size_t kMostInputFiles = 100'000;
inline constexpr int64_t kMostInputListBytes = int64_t{64} << 20;  // of 2 TB

struct InputList {
  std::string name;                   // of the file or folder
  std::vector<CheckpointFile> files;  // by name: "tokens.txt", "tokens/part-0.bin"; name, bytes and blocks alone
  int64_t bytes() const;
};

// The text, and what the input is known by.
std::string InputListToJson(const InputList& list);
JobInput InputOf(const InputList& list);
// DATA_LOSS: it is not the list of that id, or of no use.
absl::StatusOr<InputList> InputListFromJson(const std::string& text, const std::string& id);

// What is taken of a folder.
struct InputChoice {
  bool follow_links = false;                                         // else one beneath the path is refused
  std::function<bool(const std::string& beneath)> wanted = nullptr;  // not set: all; "onnx/model.onnx" beneath the path
};
// Of a folder with weights as HuggingFace's libraries write them: these, its config.json and its small files. What a download of
// the hub holds are links.
InputChoice ChoiceOfWeights();

// Of what lies here, in the order of names. `progress` gets the bytes read so far, and the bytes in all; false from it:
// CANCELLED. NOT_FOUND names the path; INVALID_ARGUMENT: a link, a pipe, a name that is no UTF-8, too many files, or nothing at
// all; ABORTED: a file changed while it was read.
absl::StatusOr<InputList> ListInput(const std::string& path, const std::function<bool(int64_t read, int64_t all)>& progress,
                                    const InputChoice& choice = {});

}  // namespace motley
