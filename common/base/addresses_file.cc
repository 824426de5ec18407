#include "common/base/addresses_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace motley {

absl::Status WriteAddressesFile(const std::string& path, const std::map<std::string, std::string>& addresses) {
  nlohmann::ordered_json said = {{"pid", getpid()}};
  for (const auto& [name, address] : addresses) {
    if (!address.empty()) said[name] = CleanText(address);
  }
  const std::string partial = absl::StrCat(path, ".", getpid(), ".partial");
  MOTLEY_RETURN_IF_ERROR(WriteFileDurably(partial, said.dump() + "\n"));
  if (rename(partial.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const absl::Status status = FileError(errno, "write", path);
  unlink(partial.c_str());
  return status;
}

}  // namespace motley
