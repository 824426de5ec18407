// MKL's vector functions, behind ATen's exp, log, sqrt and such for large arrays on the host, choose their kernel when each is
// called first. Of two threads that do so at once one may compute its part with kernels of a few digits, that one time
// (github.com/pytorch/pytorch/issues/188792; MKL before 2025.0).
#pragma once

namespace motley::engine {

// Has each of these functions called once in this process, by one thread. Thread-safe; cheap from the second call on.
void ChooseVectorKernels();

}  // namespace motley::engine
