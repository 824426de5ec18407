// What a message repeats of the command line.
#pragma once

#include <string>
#include <vector>

namespace motley::client {

// The message with every argument in it that is longer than messages repeat (kMostEchoedBytes) cut to that, whoever wrote it
// there: this program, its parser or the coordinator. The value of "--flag=value" or "key=value" is one, too.
std::string WithShortArguments(const std::string& message, const std::vector<std::string>& arguments);

}  // namespace motley::client
