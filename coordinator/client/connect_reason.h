// Whether a connect that failed tells of the address, or of the attempt alone.
#pragma once

#include <string_view>

namespace motley::client {

// Whether `why`, the last words of gRPC's message, may be how a connect to an address that cannot be reached ends; another
// attempt then ends the same way. Not so the text of an errno that no connect has: a connect by TCP names no file, so "No such
// file or directory" was some other call's. Words that are no errno's (a name that is not found, TLS) are gRPC's own and count.
bool IsOfTheAddress(bool by_socket, std::string_view why);

}  // namespace motley::client
