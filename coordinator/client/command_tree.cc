#include "coordinator/client/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coordinator/client/screen.h"

namespace motley::client {
namespace {

constexpr size_t kHelpColumn = 28;  // where the second column begins

// "{text,json}" within what the parser says of a type.
std::vector<std::string> ChoicesIn(const std::string& type) {
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

void Row(std::string name, const std::string& help, size_t width, std::string* out) {
  name = absl::StrCat("  ", name);
  if (name.size() + 2 > kHelpColumn) {
    absl::StrAppend(out, name, "\n");
    name.clear();
  }
  name.resize(kHelpColumn, ' ');
  const std::string text = Fold(help, width == 0 ? 0 : width - kHelpColumn, 0);
  for (const auto line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(out, name, std::string(line.data(), line.size()), "\n");
    name.assign(kHelpColumn, ' ');
  }
}

std::string HelpText(const OptionText& option) {
  std::string text = option.help;
  if (!option.choices.empty() && option.value != absl::StrJoin(option.choices, "|"))
    absl::StrAppend(&text, text.empty() ? "" : "; ", "one of ", absl::StrJoin(option.choices, ", "));
  if (!option.initial.empty()) absl::StrAppend(&text, " [", option.initial, "]");
  return text;
}

}  // namespace

bool OptionText::is_path() const {
  constexpr std::string_view kPaths[] = {"FILE", "FOLDER", "PATH", "PLAN", "A", "B"};
  return std::find(std::begin(kPaths), std::end(kPaths), value) != std::end(kPaths);
}

OptionText Describe(const CLI::Option& option) {
  OptionText text;
  text.positional = option.get_positional();
  if (text.positional) {
    text.names = {option.get_name(true, false)};
  } else {
    for (const std::string& name : option.get_lnames()) text.names.push_back(absl::StrCat("--", name));
    for (const std::string& name : option.get_snames()) text.names.push_back(absl::StrCat("-", name));
  }
  const std::string type = option.get_type_name();
  text.choices = ChoicesIn(type);
  if (text.positional) {
    text.value = text.names[0];
    text.many = option.get_items_expected_max() > 1;
  } else if (option.get_items_expected_max() > 0) {
    text.value = type.substr(0, type.find_first_of(":{ "));
    if (text.value.empty()) text.value = "VALUE";
  }
  text.initial = option.get_default_str();
  text.help = option.get_description();
  text.required = option.get_required();
  return text;
}

CommandText Describe(const CLI::App& app) {
  CommandText command;
  command.name = command.path = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent())
    command.path = absl::StrCat(parent->get_name(), " ", command.path);
  command.help = app.get_description();
  command.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) command.options.push_back(Describe(*option));
  std::stable_partition(command.options.begin(), command.options.end(), [](const OptionText& o) { return o.positional; });
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* s) { return !s->get_group().empty(); }))
    command.commands.push_back(Describe(*sub));
  return command;
}

std::vector<const CommandText*> AllOf(const CommandText& tree) {
  std::vector<const CommandText*> all = {&tree};
  for (const CommandText& command : tree.commands) {
    for (const CommandText* below : AllOf(command)) all.push_back(below);
  }
  return all;
}

std::string UsageOf(const CommandText& command) {
  std::string text = absl::StrCat(command.path, " [OPTIONS]");
  for (const OptionText& option : command.options) {
    if (!option.positional) continue;
    absl::StrAppend(&text, option.required ? " " : " [", option.value, option.many ? "..." : "", option.required ? "" : "]");
  }
  if (!command.commands.empty()) absl::StrAppend(&text, command.path == command.name ? " COMMAND" : " [COMMAND]");
  return text;
}

std::string SynopsisOf(const OptionText& option) {
  if (option.positional) return option.value;
  return absl::StrCat(absl::StrJoin(option.names, ", "), option.value.empty() ? "" : " ", option.value);
}

std::string HelpOf(const CommandText& command, size_t width) {
  std::string out = absl::StrCat(Fold(command.help, width, 0), "\n\nusage: ", UsageOf(command), "\n");
  bool heading = false;
  for (const OptionText& option : command.options) {
    if (!option.positional) continue;
    if (!heading) out += "\narguments:\n";
    heading = true;
    Row(option.value, HelpText(option), width, &out);
  }
  out += "\noptions:\n";
  for (const OptionText& option : command.options) {
    if (!option.positional) Row(SynopsisOf(option), HelpText(option), width, &out);
  }
  if (!command.commands.empty()) out += "\ncommands:\n";
  for (const CommandText& sub : command.commands) Row(sub.name, sub.help, width, &out);
  if (!command.footer.empty()) absl::StrAppend(&out, "\n", Fold(command.footer, width, 6), "\n");
  if (command.path != command.name) out += "\n--coordinator, -o, --json and --wide of 'motley --help' may stand here too.\n";
  return out;
}

}  // namespace motley::client
