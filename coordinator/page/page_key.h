// The key that the page's data asks for: 128 random bits in the state folder, for whoever may open the coordinator's socket.
// docs/inside/page.md
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace motley::coordinator {

// 32 hexadecimal digits, of STATE_FOLDER/page.key (mode 0600), which is made where it is missing or no key. To change the key,
// remove the file and start the coordinator anew. The errors of reading and writing files.
absl::StatusOr<std::string> PageKey(const std::string& state_folder);

}  // namespace motley::coordinator
