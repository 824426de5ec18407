// Which inputs unfinished jobs read, what these wait for meanwhile, and the end of one for whose input nobody cares.
// docs/inside/inputs.md
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/core/core.h"

namespace motley::coordinator {

// An input, its name, and the unfinished jobs that read it.
struct WantedInput {
  std::string name;
  std::vector<const JobRecord*> jobs;
};
using WantedInputs = std::map<std::string, WantedInput>;
WantedInputs WantedBy(const ClusterState& state);

// Says in ClusterState who lacks which job's inputs, and what each job waits for.
void NoteWhoWaits(Core& core, const WantedInputs& wanted);
// Queued jobs end that wait for this one while no node that is here has it, and nobody sends it, for a day.
void EndJobsInVain(Core& core, const WantedInput& input, InputKeeper& keeper);

}  // namespace motley::coordinator
