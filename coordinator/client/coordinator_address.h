// Where the coordinator is, as the user says it or as it can be found.
#pragma once

#include <string>

namespace motley::client {

// The Unix socket of the service, or of a coordinator with the default state folder: the first that is there, else the first.
std::string FindCoordinator();

// "" or why the address cannot be one: HOST:PORT, or unix:PATH.
std::string CheckCoordinatorAddress(const std::string& address);

}  // namespace motley::client
