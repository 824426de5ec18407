#include "common/base/addresses_file.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "common/base/clean_text.h"
#include "common/base/files.h"

namespace motley {

absl::Status WriteAddressesFile(const std::string& path, const std::map<std::string, std::string>& addresses) {
  nlohmann::ordered_json said = {{"pid", getpid()}};
  for (const auto& [name, address] : addresses) {
    if (!address.empty()) said[name] = CleanText(address);
  }
  return ReplaceFileDurably(path, said.dump() + "\n");
}

}  // namespace motley
