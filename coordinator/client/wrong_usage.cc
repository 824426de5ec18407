#include "coordinator/client/wrong_usage.h"

#include <map>
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

// What people ask for and no command has, or not under this name.
constexpr std::pair<std::string_view, std::string_view> kLacking[] = {
    {"lora", "Motley trains all weights: there is no LoRA and no other adapter"},
    {"qlora", "Motley trains all weights: there is no LoRA and no other adapter"},
    {"peft", "Motley trains all weights: there is no LoRA and no other adapter"},
    {"optimizer", "AdamW with its state in float32 is the only optimizer"},
    {"optim", "AdamW with its state in float32 is the only optimizer"},
    {"quantize", "weights are float32, float16 or bfloat16, nothing is quantised"},
    {"load-in-8bit", "weights are float32, float16 or bfloat16, nothing is quantised"},
    {"load-in-4bit", "weights are float32, float16 or bfloat16, nothing is quantised"},
    {"exact", "a plan's text is for reading; -o json has all of the plan, in full"},
    {"offload", "a job's file says it: planner.offload, or --set planner.offload=never; plan and estimate have it"},
    {"nodes", "all that the cluster has are used; --exclude, of a job planner.exclude, leaves some out"},
    {"gpus", "all that the cluster has are used; --exclude, of a job planner.exclude, leaves some out"},
    {"only", "all that the cluster has are used; --exclude, of a job planner.exclude, leaves some out"},
};

// Without what all options begin with, which makes all of them alike.
std::string WithoutDashes(std::string_view option) {
  const size_t at = option.find_first_not_of('-');
  return at == option.npos ? "" : std::string(option.substr(at));
}

std::string NearestOption(const std::string& name, const CommandText& command, const CommandText& root) {
  std::vector<std::string> known;
  std::map<std::string, std::string> as_given;
  for (const CommandText* from : {&command, &root}) {
    for (const OptionText& option : from->options) {
      if (option.positional) continue;
      for (const std::string& each : option.names) {
        known.push_back(WithoutDashes(each));
        as_given.emplace(known.back(), each);
      }
    }
  }
  const std::string nearest = NearestWord(name, known);
  return nearest.empty() ? "" : as_given.at(nearest);
}

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
    const std::string name = WithoutDashes(word.substr(0, word.find('=')));
    for (const auto& [lacking, why] : kLacking) {
      if (name == lacking) return absl::StrCat("'", command.path, "' has no option ", word, ": ", std::string(why));
    }
    const std::string nearest = NearestOption(name, command, root);
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
