#include "coordinator/client/whole_number.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace motley::client {

std::function<std::string(const std::string&)> WholeFrom(int64_t least) {
  return [least](const std::string& text) -> std::string {
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number >= least) return "";
    return absl::StrCat("must be a whole number from ", least, ", got '", text, "'");
  };
}

}  // namespace motley::client
