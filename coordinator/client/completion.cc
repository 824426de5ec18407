// Completion for bash, zsh and fish.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "coordinator/client/command_tree.h"

namespace motley::client {
namespace {

// Paths of all commands but the first, for the shells' walk along the words.
std::string Paths(const CommandText& tree, const char* separator) {
  std::vector<std::string> paths;
  for (const CommandText* command : AllOf(tree)) {
    if (command != &tree) paths.push_back(absl::StrCat("'", command->path, "'"));
  }
  return absl::StrJoin(paths, separator);
}

// Those of a command and those of `motley`, which may stand behind every command.
std::vector<OptionText> OptionsOf(const CommandText& tree, const CommandText& command) {
  std::vector<OptionText> options = command.options;
  if (&command == &tree) return options;
  for (const OptionText& option : tree.options) {
    if (option.names[0] != "--help" && option.names[0] != "--version") options.push_back(option);
  }
  return options;
}

// In single quotes of a POSIX shell.
std::string Quote(const std::string& text) { return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'"); }
std::string FishQuote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

}  // namespace

std::string BashCompletion(const CommandText& tree) {
  std::string values, words;
  for (const CommandText* command : AllOf(tree)) {
    std::vector<std::string> list;
    for (const CommandText& sub : command->commands) list.push_back(sub.name);
    for (const OptionText& option : OptionsOf(tree, *command)) {
      if (option.positional) continue;
      list.insert(list.end(), option.names.begin(), option.names.end());
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(absl::StrCat("'", command->path, " ", name, "'"));
      // Where nothing is offered, readline completes file names.
      absl::StrAppend(&values, "    ", absl::StrJoin(patterns, "|"), ") COMPREPLY=($(compgen -W ",
                      Quote(absl::StrJoin(option.choices, " ")), " -- \"$cur\")); return ;;\n");
    }
    absl::StrAppend(&words, "    '", command->path, "') words=", Quote(absl::StrJoin(list, " ")), " ;;\n");
  }
  return absl::StrCat(
      "# bash completion for motley\n_motley() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=motley words i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$at ${COMP_WORDS[i]}\" in\n      ",
      Paths(tree, "|"), ") at=\"$at ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n  case \"$at $prev\" in\n", values,
      "  esac\n  case $at in\n", words,
      "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _motley motley\n");
}

std::string ZshCompletion(const CommandText& tree) {
  const auto brackets = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"'", "'\\''"}});
  };
  std::string cases;
  for (const CommandText* command : AllOf(tree)) {
    absl::StrAppend(&cases, "    '", command->path, "')\n      _arguments -s");
    std::vector<std::string> subs;
    for (const CommandText& sub : command->commands) {
      const std::string help = absl::StrReplaceAll(brackets(sub.help), {{"\"", "\\\""}});
      subs.push_back(absl::StrCat(sub.name, "\\:\"", help, "\""));
    }
    if (!subs.empty()) absl::StrAppend(&cases, " \\\n        '1:command:((", absl::StrJoin(subs, " "), "))'");
    for (const OptionText& option : OptionsOf(tree, *command)) {
      std::string action = option.is_path() ? "_files" : "";
      if (!option.choices.empty()) action = absl::StrCat("(", absl::StrJoin(option.choices, " "), ")");
      if (option.positional) {
        if (subs.empty()) absl::StrAppend(&cases, " \\\n        ':", brackets(option.value), ":", action, "'");
        continue;
      }
      for (const std::string& name : option.names) {
        absl::StrAppend(&cases, " \\\n        '*", name, "[", brackets(option.help), "]");
        if (!option.value.empty()) absl::StrAppend(&cases, ":", option.value, ":", action);
        cases += "'";
      }
    }
    absl::StrAppend(&cases, " ;;\n");
  }
  return absl::StrCat(
      "#compdef motley\n_motley() {\n  local at=motley word\n  local -a rest\n  local -i current=$CURRENT i\n"
      "  for ((i = 2; i <= $#words; i++)); do\n    word=$words[i]\n    case \"$at $word\" in\n      ",
      Paths(tree, "|"),
      ") if ((i < CURRENT)); then at=\"$at $word\"; ((current--)); continue; fi ;;\n    esac\n    rest+=(\"$word\")\n  done\n"
      "  words=(motley \"${rest[@]}\")\n  CURRENT=$current\n  case $at in\n",
      cases, "  esac\n}\n_motley \"$@\"\n");
}

std::string FishCompletion(const CommandText& tree) {
  std::string out = "# fish completion for motley\ncomplete -c motley -f\n";
  for (const CommandText* command : AllOf(tree)) {
    std::string seen;
    for (const std::string& word : std::vector<std::string>(absl::StrSplit(command->path, ' '))) {
      if (word != tree.name) absl::StrAppend(&seen, seen.empty() ? "" : "; and ", "__fish_seen_subcommand_from ", word);
    }
    // Options of `motley` itself may stand everywhere.
    const std::string when = seen.empty() ? "" : absl::StrCat(" -n '", seen, "'");
    std::vector<std::string> names;
    for (const CommandText& sub : command->commands) names.push_back(sub.name);
    const std::string none = names.empty() ? "" : absl::StrCat("not __fish_seen_subcommand_from ", absl::StrJoin(names, " "));
    for (const CommandText& sub : command->commands) {
      absl::StrAppend(&out, "complete -c motley -n '", seen, seen.empty() ? "" : "; and ", none, "' -a ", sub.name, " -d ",
                      FishQuote(sub.help), "\n");
    }
    for (const OptionText& option : command->options) {
      if (option.positional) {
        if (option.is_path()) absl::StrAppend(&out, "complete -c motley", when, " -F\n");
        continue;
      }
      absl::StrAppend(&out, "complete -c motley", when);
      for (const std::string& name : option.names) {
        const bool is_long = name[1] == '-';
        absl::StrAppend(&out, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
      }
      if (!option.value.empty()) absl::StrAppend(&out, option.is_path() ? " -rF" : " -x");
      if (!option.choices.empty()) absl::StrAppend(&out, " -a ", FishQuote(absl::StrJoin(option.choices, " ")));
      absl::StrAppend(&out, " -d ", FishQuote(option.help), "\n");
    }
  }
  return out;
}

}  // namespace motley::client
