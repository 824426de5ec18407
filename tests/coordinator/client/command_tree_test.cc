// Help, man page and completion are written from the parser: each option of each command is in each of them.
#include "coordinator/client/command_tree.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "coordinator/client/cli.h"
#include "coordinator/client/command.h"

namespace motley::client {
namespace {

std::string Out(const std::vector<std::string>& arguments, const Screen& screen = {}) {
  std::ostringstream out, err;
  EXPECT_EQ(RunCli(arguments, out, err, {}, screen), 0) << err.str();
  return out.str();
}

// The tree without the options of `motley` itself, which only RunCli knows.
CommandText Tree() {
  static CLI::App app("", "motley");
  static const bool filled = [] {
    for (const Command& command : Commands()) command.add(*app.add_subcommand(command.name, command.help));
    return true;
  }();
  EXPECT_TRUE(filled);
  return Describe(app);
}

// From the line that holds `begin` to the one that holds `end`.
std::string Part(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from, text.find(end, from + begin.size()) - from);
}

TEST(CommandTreeTest, EveryOptionIsInEveryOutput) {
  const std::string man = absl::StrReplaceAll(Out({"man"}), {{"\\-", "-"}, {"\\fB", ""}, {"\\fR", ""}});
  const std::string bash = Out({"completion", "bash"}), zsh = Out({"completion", "zsh"}), fish = Out({"completion", "fish"});
  const CommandText tree = Tree();
  int options = 0;
  for (const CommandText* command : AllOf(tree)) {
    if (command == &tree) continue;
    std::vector<std::string> words = {"help"};
    for (const auto& word : std::vector<std::string>(absl::StrSplit(command->path, ' '))) words.push_back(word);
    words.erase(words.begin() + 1);
    const std::string help = Out(words);
    const std::string in_man = Part(man, absl::StrCat(".SS ", command->path, " "), "\n.S");
    const std::string in_bash = Part(bash, absl::StrCat("'", command->path, "') words="), "\n");
    const std::string in_zsh = Part(zsh, absl::StrCat("'", command->path, "')\n"), ";;");
    for (const OptionText& option : command->options) {
      if (option.positional) {
        EXPECT_NE(help.find(option.value), std::string::npos) << command->path << " " << option.value;
        continue;
      }
      for (const std::string& name : option.names) {
        EXPECT_NE(help.find(name), std::string::npos) << command->path << " " << name << " in the help\n" << help;
        EXPECT_NE(in_man.find(name), std::string::npos) << command->path << " " << name << " in the man page\n" << in_man;
        EXPECT_NE(in_bash.find(name), std::string::npos) << command->path << " " << name << " for bash\n" << in_bash;
        EXPECT_NE(in_zsh.find(absl::StrCat("'*", name, "[")), std::string::npos) << command->path << " " << name << " for zsh\n"
                                                                                 << in_zsh;
        const bool is_long = name[1] == '-';
        EXPECT_NE(fish.find(absl::StrCat(is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1), " ")), std::string::npos)
            << command->path << " " << name << " for fish";
        ++options;
      }
    }
  }
  EXPECT_GT(options, 40);
}

TEST(CommandTreeTest, HelpHasValueNamesAndFitsTheScreen) {
  const std::string submit = Out({"help", "submit"});
  for (const char* part : {"usage: motley submit [OPTIONS] FILE\n", "--set KEY=VALUE", "--job-id, --id ID"})
    EXPECT_NE(submit.find(part), std::string::npos) << part << submit;
  EXPECT_EQ(Out({"submit", "--help"}), submit);
  EXPECT_NE(Out({"help", "data", "prepare"}).find("usage: motley data prepare [OPTIONS] FILE...\n"), std::string::npos);
  const CommandText tree = Tree();
  for (const CommandText* command : AllOf(tree)) {
    std::istringstream help(HelpOf(*command, 80));
    for (std::string line; std::getline(help, line);) EXPECT_LE(Columns(line), 80u) << command->path << ": " << line;
  }
}

TEST(CommandTreeTest, HiddenCommandsAreForPackages) {
  EXPECT_EQ(Out({"--help"}).find("completion"), std::string::npos);
  EXPECT_NE(Out({"--help"}).find("  submit "), std::string::npos);
}

}  // namespace
}  // namespace motley::client
