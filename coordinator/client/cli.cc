#include "coordinator/client/cli.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/build_info.h"
#include "common/base/clean_text.h"
#include "common/base/written_path.h"
#include "coordinator/client/command.h"
#include "coordinator/client/command_tree.h"
#include "coordinator/client/coordinator_address.h"
#include "coordinator/client/echoed_arguments.h"
#include "coordinator/client/wrong_usage.h"

namespace motley::client {
namespace {

constexpr size_t kProseIndent = 4;

// Several lines stay several lines, each with the program's name.
void Complain(std::ostream& err, const std::string& message, size_t width) {
  size_t begin = 0;
  while (begin < message.size()) {
    const size_t end = std::min(message.find('\n', begin), message.size());
    err << Fold(absl::StrCat("motley: ", CleanLine(message.substr(begin, end - begin))), width, kProseIndent) << std::endl;
    begin = end + 1;
  }
}

// The innermost command that was given.
const CLI::App* Parsed(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return at;
}

// Shells expand neither "--out=~/x" nor what stands in quotes: the folder would be called "~".
std::string AsPath(const std::string& written) {
  std::string path = WithHome(written, HomeFolder());
  const std::string why = WhyNoPath(path, Patterns::kTake);
  if (!why.empty()) throw CLI::ValidationError(absl::StrCat(Quoted(path), " ", why));
  return path;
}

// Every option of these commands that names a file or a folder.
void ExpandPaths(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (Describe(*option).is_path()) option->transform(AsPath);
  }
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) ExpandPaths(*sub);
}

// Help and version are asked for; everything else is wrong usage.
Exit FromParser(const CLI::App& app, const CLI::ParseError& error, Context& context) {
  if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) {
    context.out << HelpOf(Describe(*Parsed(app)), context.screen.width == 0 ? kHelpWidth : context.screen.width);
    return {};
  }
  if (dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr) {
    context.out << error.what() << std::endl;
    return {};
  }
  const CommandText root = Describe(app), command = Describe(*Parsed(app));
  const std::vector<std::string> rest = app.remaining(true);
  if (!rest.empty()) return {kUsage, Unexpected(rest, command, root)};
  return {kUsage, absl::StrCat(error.what(), "; ", SeeHelp(command))};
}

}  // namespace

void PrintProse(Context& context, const std::string& text) {
  context.out << Fold(text, context.screen.width, kProseIndent);
  if (!text.empty() && text.back() != '\n') context.out << "\n";
  context.out << std::flush;
}

int RunCli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err, const ConnectionOptions& connection,
           const Screen& screen) {
  CLI::App app(
      "Motley trains one transformer on mixed GPUs. The coordinator does the work; this command talks to it, and plans without "
      "it.",
      "motley");
  Context context{FindCoordinator(), false, connection, out, err, screen};
  std::string output = "text";
  app.add_option("--coordinator", context.coordinator,
                 "HOST:PORT or unix:PATH of the coordinator; the environment variable MOTLEY_COORDINATOR says it too")
      ->type_name("ADDRESS")
      ->envname("MOTLEY_COORDINATOR")
      ->check(CheckCoordinatorAddress)  // wrong usage, and no reason to wait for an answer
      ->capture_default_str();
  app.add_option("-o,--output", output, "for people or for programs (docs/use/json-output.md)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  bool json = false;
  app.add_flag("--json", json, "the same as -o json");
  bool wide = false;
  app.add_flag("--wide", wide, "whole lines and tables, also where the terminal is narrower");
  app.set_version_flag("--version", BuildInfo("motley"));
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : Commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    sub->fallthrough();  // --coordinator and -o may stand behind the command too
    actions.push_back({sub, command.add(*sub)});
    ExpandPaths(*sub);
  }
  const auto end = [&](Exit exit) {
    out << std::flush;
    // A file that a full disk cut off is not to be taken for the whole answer.
    if (!out && exit.code == 0)
      exit = {EX_IOERR, "cannot write to standard output: what was written is not all (is its disk full?)"};
    Complain(err, WithShortArguments(exit.message, arguments), screen.error_width);
    return exit.code;
  };
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return end(FromParser(app, error, context));
  }
  context.json = json || output == "json";
  if (wide) context.screen.width = 0;
  for (const auto& [sub, action] : actions) {
    if (!sub->parsed()) continue;
    return end(action(context));
  }
  return kUsage;
}

}  // namespace motley::client
