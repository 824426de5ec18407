#include "coordinator/client/wrong_usage.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"

namespace motley::client {

std::string UnknownCommand(const std::string& word, const CommandText& command) {
  std::vector<std::string> known;
  for (const CommandText& sub : command.commands) known.push_back(sub.name);
  const std::string nearest = NearestWord(word, known);
  std::string hint = absl::StrCat("did you mean '", nearest, "'?");
  if (nearest.empty()) hint = absl::StrCat("known are ", absl::StrJoin(known, ", "));
  if (known.empty()) hint = absl::StrCat("'", command.path, "' has none");
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
  if (!command.commands.empty()) return UnknownCommand(words.front(), command);
  return absl::StrCat("'", command.path, "' has no use for '", absl::StrJoin(words, "' '"),
                      "'; it is called as: ", UsageOf(command));
}

std::string SeeHelp(const CommandText& command) {
  const size_t space = command.path.find(' ');
  return absl::StrCat("see 'motley help", space == std::string::npos ? "" : command.path.substr(space), "'");
}

}  // namespace motley::client
