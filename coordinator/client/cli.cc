#include "coordinator/client/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/clean_text.h"
#include "common/nearest.h"
#include "common/build_info.h"
#include "coordinator/client/command.h"
#include "coordinator/client/coordinator_address.h"

namespace motley::client {
namespace {

// Several lines stay several lines, each with the program's name.
void Complain(std::ostream& err, const std::string& message) {
  size_t begin = 0;
  while (begin < message.size()) {
    const size_t end = std::min(message.find('\n', begin), message.size());
    err << "motley: " << CleanLine(message.substr(begin, end - begin)) << std::endl;
    begin = end + 1;
  }
}

std::string UnknownCommand(const std::string& word) {
  std::vector<std::string> known;
  for (const Command& command : Commands()) known.emplace_back(command.name);
  const std::string nearest = NearestWord(word, known);
  const std::string hint =
      nearest.empty() ? absl::StrCat("known are ", absl::StrJoin(known, ", ")) : absl::StrCat("did you mean '", nearest, "'?");
  return absl::StrCat("unknown command '", word, "'; ", hint);
}

}  // namespace

int RunCli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err, const ConnectionOptions& connection) {
  CLI::App app("Motley trains one transformer on mixed GPUs. The coordinator does the work; this command talks to it, and plans without it.", "motley");
  Context context{FindCoordinator(), false, connection, out, err};
  std::string output = "text";
  app.add_option("--coordinator", context.coordinator, "HOST:PORT or unix:PATH of the coordinator")
      ->envname("MOTLEY_COORDINATOR")
      ->check(CheckCoordinatorAddress)  // wrong usage, and no reason to wait for an answer
      ->capture_default_str();
  app.add_option("-o,--output", output, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  app.set_version_flag("--version", BuildInfo("motley"));
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : Commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    sub->fallthrough();  // --coordinator and -o may stand behind the command too
    actions.push_back({sub, command.add(*sub)});
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> rest = app.remaining();
    if (rest.empty() || !app.get_subcommands().empty()) {
      app.exit(error, out, err);
      return kUsage;
    }
    Complain(err, UnknownCommand(rest.front()));
    return kUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? 0 : kUsage;
  }
  context.json = output == "json";
  for (const auto& [sub, action] : actions) {
    if (!sub->parsed()) continue;
    const Exit exit = action(context);
    Complain(err, exit.message);
    return exit.code;
  }
  return kUsage;
}

}  // namespace motley::client
