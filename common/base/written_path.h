// Paths as people write them where no shell reads them: in files, behind --flag=, in requests. A path is taken letter by letter,
// so that what a shell would make of these letters is another file, or a folder that is called "~".
#pragma once

#include <string>
#include <string_view>

namespace motley {

// What to make of *, ?, [..] and {..,..}.
enum class Patterns {
  kRefuse,  // nobody expands them here
  kTake,    // a shell has expanded them already: what is left is a file's name
};

// What keeps `written` from being a path letter by letter, and the way out: a home or a variable of the shell, a URL, another
// machine's or Windows's path, a pattern, blanks around it. Goes on after the path: "is a URL; ...". Empty where nothing does.
std::string WhyNoPath(std::string_view written, Patterns patterns);

// "~" and "~/..." with `home` in its place, all else as it is. Without an absolute home nothing is replaced.
std::string WithHome(std::string_view written, std::string_view home);
// The home of who runs this program: $HOME, else what the system's table of users says; empty where neither does.
std::string HomeFolder();

}  // namespace motley
