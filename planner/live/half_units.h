// Cards that compute no faster in a job's half type, for people who chose it for speed. NVIDIA, CUDA programming guide,
// "Arithmetic instructions": results a clock cycle and multiprocessor by compute capability.
#pragma once

#include <string>
#include <vector>

#include "common/base/dtype.h"
#include "common/device/device.h"

namespace motley::planner {

// "n1/gpu0 (Tesla P40) has no fast bfloat16: it saves memory there and no time"; of several cards each; empty: there is none, or
// `compute` is no half type.
std::string SlowInHalf(const std::vector<DeviceDescription>& devices, DType compute);

}  // namespace motley::planner
