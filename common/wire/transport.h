// Which transport moves whose bytes <-> its wire form, both ways.
#pragma once

#include <vector>

#include "common/session/transport_use.h"
#include "proto/motley/v1/job.pb.h"

namespace motley::wire {

v1::TransportUse ToProto(const TransportUse& use);
// Without those of a transport that this version does not know.
std::vector<TransportUse> FromProto(const google::protobuf::RepeatedPtrField<v1::TransportUse>& uses);

}  // namespace motley::wire
