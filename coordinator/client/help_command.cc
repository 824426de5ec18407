#include "coordinator/client/help_command.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "coordinator/client/command_tree.h"
#include "coordinator/client/wrong_usage.h"

namespace motley::client {
namespace {

Exit Help(Context& context, const CLI::App& root, const std::vector<std::string>& words) {
  const CommandText tree = Describe(root);
  const CommandText* command = &tree;
  for (const std::string& word : words) {
    const CommandText* found = nullptr;
    for (const CommandText& sub : command->commands) {
      if (sub.name == word) found = &sub;
    }
    if (found == nullptr) return {kUsage, UnknownCommand(word, *command, tree)};
    command = found;
  }
  context.out << HelpOf(*command, context.screen.width == 0 ? kHelpWidth : context.screen.width);
  return {};
}

}  // namespace

Action AddHelp(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("COMMAND", *words, "such as submit, or nodes drain");
  return [words, &app](Context& context) { return Help(context, *app.get_parent(), *words); };
}

Action AddMan(CLI::App& app) {
  app.group("");
  return [&app](Context& context) -> Exit {
    context.out << ManPage(Describe(*app.get_parent()));
    return {};
  };
}

Action AddCompletion(CLI::App& app) {
  app.group("");
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "the shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell, &app](Context& context) -> Exit {
    const CommandText tree = Describe(*app.get_parent());
    context.out << (*shell == "bash" ? BashCompletion(tree) : *shell == "zsh" ? ZshCompletion(tree) : FishCompletion(tree));
    return {};
  };
}

}  // namespace motley::client
