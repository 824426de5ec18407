#pragma once

#include "common/data/data_summary.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::wire {

v1::DataSummary ToProto(const DataSummary& summary);
DataSummary FromProto(const v1::DataSummary& proto);

}  // namespace motley::wire
