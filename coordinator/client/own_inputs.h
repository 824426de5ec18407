// What a job reads that lies on this machine: found, listed, and named in the job by its contents. docs/inside/inputs.md
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/inputs/input_list.h"
#include "common/job/job_file.h"
#include "coordinator/client/command.h"
#include "coordinator/client/connection.h"

namespace motley::client {

// Where nodes may have it, too.
struct ElsewhereOnNodes {
  std::string path;  // empty: nobody says so
  std::vector<std::string> nodes;
};
struct OwnInput {
  std::string path;  // here
  ElsewhereOnNodes elsewhere;
  InputList list;
};

// "here:" paths of the job become inputs, and so do others that lie here and of which the nodes do not all have the same. 65:
// what lies here cannot be sent, or a node has something else at that path; 66: nothing lies here; else what the coordinator
// says.
// `known`: the job that has the id already: a path that it reads as an input is this machine's, whatever the nodes have by now.
Exit TakeOwnInputs(Context& context, const JobFile& file, const std::optional<JobConfig>& known, JobConfig& config,
                   std::vector<OwnInput>* inputs);

// One after the other, to a node of the cluster. What fails says how to go on with the job.
Exit SendOwnInputs(Context& context, Connection& connection, const std::string& job, const std::vector<OwnInput>& inputs);

}  // namespace motley::client
