#include "coordinator/client/wrong_usage.h"

#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"

namespace motley::client {

namespace {

// What other programs call it.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"cancel", "stop"}, {"kill", "stop"}, {"rm", "delete"},  {"remove", "delete"}, {"ls", "list"},
    {"ps", "list"},     {"jobs", "list"}, {"run", "submit"}, {"start", "submit"},  {"tail", "logs"},
};

// "node forget" where the word is a command, but not here; or what is called otherwise; empty: neither.
std::string CommandElsewhere(const std::string& word, const CommandText& command, const CommandText& root) {
  for (const CommandText& group : root.commands) {
    for (const CommandText& each : group.commands) {
      if (each.name == word) return absl::StrCat(group.name, " ", each.name);
    }
  }
  if (command.path != root.path) return "";
  for (const auto& [other, ours] : kOtherNames) {
    if (word == other) return std::string(ours);
  }
  return "";
}

}  // namespace

std::string UnknownCommand(const std::string& word, const CommandText& command, const CommandText& root) {
  std::vector<std::string> known;
  for (const CommandText& sub : command.commands) known.push_back(sub.name);
  std::string nearest = CommandElsewhere(word, command, root);
  if (nearest.empty()) nearest = NearestWord(word, known);
  std::string hint = absl::StrCat("did you mean '", nearest, "'?");
  if (nearest.empty()) hint = absl::StrCat("known are ", absl::StrJoin(known, ", "));
  if (nearest.empty() && known.empty()) hint = absl::StrCat("'", command.path, "' has none");
  return absl::StrCat("unknown command '", word, "'; ", hint);
}

std::string Unexpected(const std::vector<std::string>& words, const CommandText& command, const CommandText& root) {
  for (const std::string& word : words) {
    if (word.size() < 2 || word[0] != '-') continue;
    std::vector<std::string> known;
    for (const CommandText* from : {&command, &root}) {
      for (const OptionText& option : from->options) {
        if (!option.positional) known.insert(known.end(), option.names.begin(), option.names.end());
      }
    }
    const std::string nearest = NearestWord(word.substr(0, word.find('=')), known);
    return absl::StrCat("'", command.path, "' has no option ", word,
                        nearest.empty() ? absl::StrCat("; ", SeeHelp(command)) : absl::StrCat("; did you mean ", nearest, "?"));
  }
  if (!command.commands.empty()) return UnknownCommand(words.front(), command, root);
  return absl::StrCat("'", command.path, "' has no use for '", absl::StrJoin(words, "' '"),
                      "'; it is called as: ", UsageOf(command));
}

std::string SeeHelp(const CommandText& command) {
  const size_t space = command.path.find(' ');
  return absl::StrCat("see 'motley help", space == std::string::npos ? "" : command.path.substr(space), "'");
}

}  // namespace motley::client
