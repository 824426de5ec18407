#include "worker/engine/device/nvtx_range.h"

#include <torch/csrc/profiler/stubs/base.h>

#include <cstdlib>
#include <string_view>
#include <variant>

#include "absl/strings/str_cat.h"

namespace motley::engine {

bool NvtxIsWanted() {
  const char* const said = std::getenv("MOTLEY_NVTX");
  // Without the library every call of PyTorch's throws.
  return said != nullptr && std::string_view(said) == "1" && torch::profiler::impl::cudaStubs()->enabled();
}

std::string NvtxName(const Operation& op) {
  std::string name(OperationName(op));
  std::visit(
      [&name](const auto& o) {
        if constexpr (requires { o.unit; }) absl::StrAppend(&name, " unit ", o.unit);
        if constexpr (requires { o.microbatch; }) absl::StrAppend(&name, " microbatch ", o.microbatch);
        if constexpr (requires { o.peer; }) absl::StrAppend(&name, " peer ", o.peer);
        if constexpr (requires { o.segment; }) {
          if (o.segment != UnitSegment::kWhole)
            absl::StrAppend(&name, " ", std::string(WordsOf(o.segment)[static_cast<size_t>(o.segment)]));
        }
      },
      op);
  return name;
}

NvtxRange::NvtxRange(bool wanted, const Operation& op) : wanted_(wanted) {
  if (wanted_) torch::profiler::impl::cudaStubs()->rangePush(NvtxName(op).c_str());
}
NvtxRange::~NvtxRange() {
  if (wanted_) torch::profiler::impl::cudaStubs()->rangePop();
}

}  // namespace motley::engine
