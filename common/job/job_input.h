// What a job reads that was sent to the nodes: it is named by its contents, and each node has it beneath its [files] local.
// docs/inside/inputs.md
//
//   "here:/home/me/tokens.txt"    as people write it: of the machine that submits; motley submit sends it
//   "nodes:/data/tokens.txt"      as people write it: of each node, whatever lies there on the machine that submits
//   "/home/me/tokens.txt"         as people write it: where not all nodes have it, of the machine that submits
//   "input:ID/tokens.txt"         as the job has it: ID is the SHA-256 (hex) of its list (common/inputs/input_list.h)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job.h"

namespace motley {

struct JobInput {
  std::string id;    // 64 hexadecimal digits, in lower case
  std::string name;  // of the file or folder, without a slash
  friend bool operator==(const JobInput&, const JobInput&) = default;
};

// Whether a text is an input's id: it becomes part of paths.
bool IsInputId(std::string_view text);
// Whether a text may be an input's name.
bool IsInputName(std::string_view text);
// Nothing: the path is none.
std::optional<JobInput> ParseInput(std::string_view path);
std::string PathOf(const JobInput& input);

// Behind "here:"; nothing: the path is not of the machine that submits.
std::optional<std::string> HerePath(std::string_view path);
std::string PathHere(std::string_view path);
// Behind "nodes:".
std::optional<std::string> NodesPath(std::string_view path);

// The paths of a job that may be inputs, each with its key: data.path, data.validation_path, checkpoint.initial.
struct InputPath {
  const char* key;
  std::string* path;
};
std::vector<InputPath> InputPaths(JobConfig& config);
inline constexpr char kInitialKey[] = "checkpoint.initial";
// Of a job, each once.
std::vector<JobInput> InputsOf(const JobConfig& config);

}  // namespace motley
