// The one precompiled header of the engine: ATen without torch/torch.h (30 s a file).
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
