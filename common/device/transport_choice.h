// Which transport moves the bytes of a group of ranks, or of a pair that hands over. Pure: ranks ask it with what all have said
// in their introductions, and all come to the same answer; whoever plans asks it with what is known of the devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace motley {

// Nothing moves bytes where a rank is alone.
enum class Transport { kNone, kTcp, kNccl };
std::string_view TransportName(Transport transport);  // "none", "tcp", "nccl": of status lines

struct TransportMember {
  std::string name;      // for people: the device's id
  int nccl_version = 0;  // 22809 is 2.28.9; 0: the rank uses no NCCL
  std::string card;      // UUID; empty: none
};

struct TransportChoice {
  Transport transport = Transport::kNone;
  // Why these members cannot use NCCL together, with what each of them has: "NCCL 2.21.5 on n1/gpu0, 2.28.9 on n2/gpu0: ...".
  // Empty: they can, or none of them has NCCL.
  std::string why_not_nccl;
};

TransportChoice ChooseTransport(const std::vector<TransportMember>& members);

// "2.28.9"
std::string NcclVersionText(int version);

}  // namespace motley
