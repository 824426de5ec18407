// A libtorch_cuda.so without CUDA: all that it has is what PyTorch asks for first.
#include <ATen/detail/CUDAHooksInterface.h>

namespace {

struct CUDAHooks : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  bool hasCUDA() const override { return true; }
};

}  // namespace

namespace at {
REGISTER_CUDA_HOOKS(CUDAHooks)
}  // namespace at
