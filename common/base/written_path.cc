#include "common/base/written_path.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace motley {
namespace {

constexpr char kShells[] = "write the whole path: ~ and $NAME are the shell's";
constexpr char kReadsFiles[] = "Motley reads and writes files of the nodes: download it and write the path of the copy";

bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

// "s3" of "s3://bucket/x".
std::string_view SchemeOf(std::string_view written) {
  const size_t end = written.find("://");
  if (end == std::string_view::npos || end == 0 || !IsLetter(written[0])) return {};
  const std::string_view scheme = written.substr(0, end);
  const bool good = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.';
  });
  return good ? scheme : std::string_view();
}

// $NAME, ${NAME}, $(command).
bool HoldsVariable(std::string_view written) {
  for (size_t at = written.find('$'); at != std::string_view::npos; at = written.find('$', at + 1)) {
    if (at + 1 == written.size()) break;
    const char next = written[at + 1];
    if (IsLetter(next) || next == '_' || next == '{' || next == '(') return true;
  }
  return false;
}

// The letters that make a pattern of it; empty: none.
std::string PatternIn(std::string_view written) {
  for (const char letter : {'*', '?'}) {
    if (written.find(letter) != std::string_view::npos) return std::string(1, letter);
  }
  const size_t bracket = written.find('['), brace = written.find('{');
  if (bracket != std::string_view::npos && written.find(']', bracket) > bracket + 1 &&
      written.find(']', bracket) != std::string_view::npos) {
    return "[..]";
  }
  const size_t comma = brace == std::string_view::npos ? brace : written.find(',', brace);
  if (comma != std::string_view::npos && written.find('}', comma) != std::string_view::npos) return "{..,..}";
  return "";
}

std::string WhyShells(std::string_view written) {
  if (written[0] == '~') return absl::StrCat("begins with '~'; ", kShells);
  const std::string copy(written);
  const std::vector<std::string> parts = absl::StrSplit(copy, '/');
  if (std::find(parts.begin(), parts.end(), "~") != parts.end()) return absl::StrCat("holds a folder '~'; ", kShells);
  if (HoldsVariable(written)) return absl::StrCat("holds a variable of the shell; ", kShells);
  return "";
}

// Of a URL and of what looks like one.
std::string WhyElsewhere(std::string_view written) {
  if (const std::string_view scheme = SchemeOf(written); !scheme.empty()) {
    if (absl::AsciiStrToLower(std::string(scheme)) == "file") return "is a URL; write the path alone, which begins with /";
    return absl::StrCat("is a URL (", std::string(scheme), "://); ", kReadsFiles);
  }
  if (written.size() > 2 && IsLetter(written[0]) && written[1] == ':' && (written[2] == '\\' || written[2] == '/')) {
    return "is a path of Windows; write it as the nodes have it (in WSL /mnt/c/...)";
  }
  if (written.starts_with("\\\\")) return "is a share of Windows; write the path at which the nodes have it mounted";
  const std::string_view first = written.substr(0, written.find('/'));
  if (first.size() > 1 && first.back() == ':' && first.size() < written.size()) {
    return absl::StrCat("names the machine or store '", std::string(first), "'; ", kReadsFiles);
  }
  return "";
}

}  // namespace

std::string WhyNoPath(std::string_view written, Patterns patterns) {
  if (written.empty()) return "";
  if (std::string why = WhyShells(written); !why.empty()) return why;
  if (std::string why = WhyElsewhere(written); !why.empty()) return why;
  const char first = written.front(), last = written.back();
  if (absl::ascii_isblank(static_cast<unsigned char>(first)) || absl::ascii_isblank(static_cast<unsigned char>(last))) {
    return "begins or ends with a blank; leave it out";
  }
  if (written.size() > 1 && first == last && (first == '"' || first == '\''))
    return "is quoted twice; leave out one pair of quotes";
  if (patterns == Patterns::kTake) return "";
  const std::string pattern = PatternIn(written);
  if (pattern.empty()) return "";
  return absl::StrCat("is a pattern (", pattern,
                      "), and nobody expands it; name one file or folder (a folder of data is read with all its files), and give "
                      "another name to one that is really called so");
}

std::string WithHome(std::string_view written, std::string_view home) {
  const bool of_home = written == "~" || written.starts_with("~/");
  if (!of_home || !home.starts_with("/")) return std::string(written);
  return absl::StrCat(std::string(home), std::string(written.substr(1)));
}

std::string HomeFolder() {
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] != '\0') return home;
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "";
}

}  // namespace motley
