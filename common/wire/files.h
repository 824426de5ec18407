// Messages about files on the nodes' disks <-> their wire form, each both ways.
#pragma once

#include "common/inputs/path_sample.h"
#include "common/session/files.h"
#include "proto/motley/v1/files.pb.h"

namespace motley::wire {

v1::FilesTicket ToProto(const FilesTicket& ticket);
FilesTicket FromProto(const v1::FilesTicket& ticket);

v1::PathSample ToProto(const PathSample& sample);
PathSample FromProto(const v1::PathSample& sample);

v1::ListedFiles ToProto(const ListedFiles& listed);
ListedFiles FromProto(const v1::ListedFiles& listed);

v1::HoldingsRequest ToProto(const HoldingsCommand& command);
HoldingsCommand FromProto(const v1::HoldingsRequest& request);

v1::CheckpointSource ToProto(const CheckpointSource& source);
CheckpointSource FromProto(const v1::CheckpointSource& source);

v1::CopyRequest ToProto(const CopyCommand& command);
CopyCommand FromProto(const v1::CopyRequest& request);

v1::DropRequest ToProto(const DropCommand& command);
DropCommand FromProto(const v1::DropRequest& request);

v1::CarryRequest ToProto(const CarryCommand& command);
CarryCommand FromProto(const v1::CarryRequest& request);

v1::Holdings ToProto(const HoldingsReport& report);
HoldingsReport FromProto(const v1::Holdings& holdings);

v1::FetchProgress ToProto(const FetchReport& report);
FetchReport FromProto(const v1::FetchProgress& progress);

}  // namespace motley::wire
