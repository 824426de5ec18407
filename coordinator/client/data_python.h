// The Python that makes tokens, and the program that it runs: deploy/data, which is installed beside the client.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace motley::client {

// What the environment says; tests say it themselves.
struct DataPlaces {
  std::string cache;   // of Motley: $MOTLEY_CACHE, else motley in $XDG_CACHE_HOME, else ~/.cache/motley
  std::string python;  // $MOTLEY_DATA_PYTHON
  std::string beside;  // the folder of this program
};
DataPlaces FindDataPlaces();

// The folder of the program. NOT_FOUND where it is neither installed nor in the sources of this build.
absl::StatusOr<std::string> DataProgram(const DataPlaces& places);
// The folder of the Python that `motley data setup` makes. Its name is of the list of what is in it, so another list is another
// folder.
absl::StatusOr<std::string> DataVenv(const DataPlaces& places, const std::string& program);
// `asked`, else $MOTLEY_DATA_PYTHON, else that of the setup. NOT_FOUND with both ways where there is none.
absl::StatusOr<std::string> DataPython(const DataPlaces& places, const std::string& program, const std::string& asked);

}  // namespace motley::client
