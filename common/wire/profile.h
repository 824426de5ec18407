// Profiles <-> their wire form. Cannot fail: a profile is trusted as measured.
#pragma once

#include "common/session/profile.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::wire {

v1::ComputeProfile ToProto(const ComputeProfile& profile);
ComputeProfile FromProto(const v1::ComputeProfile& proto);

v1::MemoryTrial ToProto(const MemoryTrial& trial);
MemoryTrial FromProto(const v1::MemoryTrial& proto);

v1::CardLoad ToProto(const CardLoad& load);
CardLoad FromProto(const v1::CardLoad& proto);

v1::CollectiveProfile ToProto(const CollectiveProfile& profile);
CollectiveProfile FromProto(const v1::CollectiveProfile& proto);

}  // namespace motley::wire
