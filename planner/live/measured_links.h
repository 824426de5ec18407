// What measured hand-overs say of nodes that declare no links. docs/inside/profiles.md, "Links".
#pragma once

#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/session/profile.h"
#include "planner/cluster/cluster.h"

namespace motley::planner {

// Sets rates and latencies of the nodes that are not `declared` (by node), of pairs of nodes that are slower than both NICs let
// expect, and of pairs of devices whose class of link is slower than their node's fastest. A node's device links take the rate of
// the fastest class inside it, its NIC the best to any other node; alike rates are one. Returns by node whether it was set: not
// where its links were not measured. `measured` has passed Validate and is of `devices`, which are the cluster's in their order.
std::vector<bool> SetMeasuredLinks(const CollectiveProfile& measured, const std::vector<DeviceDescription>& devices,
                                   const std::vector<bool>& declared, Cluster* cluster);

// For people: the range of measured rates inside nodes, by class where there are several, and between them; empty: nothing was
// measured.
std::string MeasuredLinksText(const CollectiveProfile& measured, const std::vector<DeviceDescription>& devices,
                              const Cluster& cluster);

// For people: the link that is slowest against what `cluster` says, all of it declared, if it is slower by a tenth; else empty.
std::string SlowerThanDeclared(const CollectiveProfile& measured, const Cluster& cluster);

}  // namespace motley::planner
