// The man page, motley(1): roff with the macros of man(7).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/version.h"
#include "coordinator/client/command_tree.h"

namespace motley::client {
namespace {

// A hyphen is a minus that can be searched and copied; a line may not begin with a request.
std::string Roff(const std::string& text) {
  std::string out;
  for (const auto line : absl::StrSplit(text, '\n')) {
    const std::string escaped = absl::StrReplaceAll(std::string(line.data(), line.size()), {{"\\", "\\e"}, {"-", "\\-"}});
    const bool request = !escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'');
    absl::StrAppend(&out, out.empty() ? "" : "\n", request ? "\\&" : "", escaped);
  }
  return out;
}

void Options(const CommandText& command, std::string* out) {
  for (const OptionText& option : command.options) {
    std::string names;
    for (const std::string& name : option.names) absl::StrAppend(&names, names.empty() ? "" : ", ", "\\fB", Roff(name), "\\fR");
    absl::StrAppend(out, ".TP\n", option.positional ? absl::StrCat("\\fI", Roff(option.value), "\\fR") : names);
    if (!option.positional && !option.value.empty()) absl::StrAppend(out, " \\fI", Roff(option.value), "\\fR");
    absl::StrAppend(out, "\n", Roff(option.help));
    if (!option.choices.empty()) absl::StrAppend(out, "\nOne of ", Roff(absl::StrJoin(option.choices, ", ")), ".");
    if (!option.initial.empty()) absl::StrAppend(out, "\nWithout it: ", Roff(option.initial), ".");
    absl::StrAppend(out, "\n");
  }
}

constexpr char kExit[] =
    ".SH EXIT STATUS\nAs in sysexits.h: 0 success; 1 the job that was waited for did not succeed; 64 the command line is wrong; "
    "65 what it names is wrong, refused or does not fit; 66 a file, job or node is not there; 69 no coordinator; 70 an error of "
    "motley; 73 the output exists or cannot be made; 74 reading or writing failed; 75 try again later; 77 not allowed.\n"
    ".SH ENVIRONMENT\n.TP\n\\fBMOTLEY_COORDINATOR\\fR\nThe coordinator's address, HOST:PORT or unix:PATH.\n"
    ".TP\n\\fBNO_COLOR\\fR\nIf set, states have no colours.\n";

}  // namespace

std::string ManPage(const CommandText& tree) {
  std::string out = absl::StrCat(".TH MOTLEY 1 \"\" \"motley ", std::string(kVersion), "\" \"User Commands\"\n",
                                 ".SH NAME\nmotley \\- train one transformer on mixed GPUs\n.SH SYNOPSIS\n.B ",
                                 Roff(UsageOf(tree)), "\n.SH DESCRIPTION\n", Roff(tree.help), "\n.SH OPTIONS\n");
  Options(tree, &out);
  absl::StrAppend(&out, ".SH COMMANDS\n");
  for (const CommandText* command : AllOf(tree)) {
    if (command == &tree) continue;
    absl::StrAppend(&out, ".SS ", Roff(UsageOf(*command)), "\n", Roff(command->help), "\n");
    Options(*command, &out);
    if (!command->footer.empty()) absl::StrAppend(&out, ".PP\n.nf\n", Roff(command->footer), "\n.fi\n");
  }
  absl::StrAppend(&out, kExit);
  return out;
}

}  // namespace motley::client
