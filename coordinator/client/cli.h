// The command line as a function: parses, runs one command, says on `err` what went wrong, returns the process's exit code.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "coordinator/client/connection.h"
#include "coordinator/client/screen.h"

namespace motley::client {

// `arguments` without the program's name. `connection`: how long to wait for what (tests shorten it). `screen`: what `out` is.
int RunCli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
           const ConnectionOptions& connection = {}, const Screen& screen = {});

}  // namespace motley::client
