// What to say of a command line that means nothing: what is wrong, the nearest that would be right, where to read on.
#pragma once

#include <string>
#include <vector>

#include "coordinator/client/command_tree.h"

namespace motley::client {

// "unknown command 'sumbit'; did you mean 'submit'?", of the commands below `command`. One that is below another is named with
// it: "did you mean 'node forget'?"
std::string UnknownCommand(const std::string& word, const CommandText& command, const CommandText& root);
// What is left over: an option that the command does not have, or a word too many. `root` for the options that every command has.
std::string Unexpected(const std::vector<std::string>& words, const CommandText& command, const CommandText& root);
// Where the rules of a command are: "see 'motley help nodes drain'".
std::string SeeHelp(const CommandText& command);

}  // namespace motley::client
