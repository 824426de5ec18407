#include "common/base/shell_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/clean_text.h"

namespace motley {

std::string ShellQuoted(std::string_view text) {
  // Within single quotes nothing but their end is special: it is closed, one is escaped, and it is opened again.
  return absl::StrCat("'", absl::StrReplaceAll(CleanLine(text), {{"'", "'\\''"}}), "'");
}

}  // namespace motley
