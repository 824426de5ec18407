// Ports of verbs devices (RoCE, InfiniBand), of which NCCL takes any that is active before it takes sockets.
#pragma once

#include <set>
#include <string>

namespace motley::engine {

// Interfaces of this machine that have an address which others can reach: not of the loopback, not of the link alone.
std::set<std::string> AddressedInterfaces();

// What NCCL_IB_HCA has to say so that NCCL leaves out RoCE ports through which no peer is reached: active ones whose interface is
// none of `addressed`. Empty: there is none. Ports of InfiniBand stay, and so do further rails. `folder`: /sys/class/infiniband,
// and another in tests; what cannot be read of it stays.
std::string VerbsPortsToLeaveOut(const std::string& folder, const std::set<std::string>& addressed);

}  // namespace motley::engine
