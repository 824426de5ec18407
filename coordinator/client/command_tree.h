// What the parser knows of the commands, as plain text: help, man page and completion are written from it alone.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace motley::client {

struct OptionText {
  std::vector<std::string> names;    // "--follow", "-f"; of a positional its name
  std::string value;                 // "FILE"; empty: takes none
  std::vector<std::string> choices;  // what the value may be, where that is a list
  std::string initial;               // the value without the option, or empty
  std::string help;
  bool positional = false, required = false;
  bool many = false;     // of a positional: it may be given more than once
  bool is_path() const;  // the value is a file or folder
};

struct CommandText {
  std::string path;  // "motley nodes drain"
  std::string name;  // "drain"
  std::string help, footer;
  std::vector<OptionText> options;    // positionals first
  std::vector<CommandText> commands;  // hidden ones are left out
};

OptionText Describe(const CLI::Option& option);
CommandText Describe(const CLI::App& app);
// The command and those below it, in order.
std::vector<const CommandText*> AllOf(const CommandText& tree);

// How the command is called: "motley nodes drain [OPTIONS] NAME".
std::string UsageOf(const CommandText& command);
// "--lines, -n N": names and value.
std::string SynopsisOf(const OptionText& option);
inline constexpr size_t kHelpWidth = 80;  // where the output is no terminal: nobody computes with it
// The help of one command, in lines of at most `width` columns (0: no limit).
std::string HelpOf(const CommandText& command, size_t width);
std::string ManPage(const CommandText& tree);
std::string BashCompletion(const CommandText& tree);
std::string ZshCompletion(const CommandText& tree);
std::string FishCompletion(const CommandText& tree);

}  // namespace motley::client
