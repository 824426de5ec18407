// The file of compiled kernels that lies beside the ranks: an index, its digest, and code for each generation of cards.
// docs/inside/kernels.md has the form. Knows neither torch nor CUDA.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace motley::engine {

inline constexpr char kKernelFileName[] = "motley-kernels";
inline constexpr int kKernelFileVersion = 1;

struct CompiledKernel {
  std::string name, dtype;
  std::string symbol;  // in every image
  size_t argument_bytes = 0;
};

// All kernels for cards of one generation: a cubin runs on its compute capability and later ones of the same major number, PTX on
// its own and all later ones, whose driver compiles it.
struct KernelImage {
  int capability = 0;  // 90: 9.0
  bool is_ptx = false;
  std::string code;
};

struct KernelFile {
  std::string compiler;  // "NVRTC 12.9"
  std::vector<CompiledKernel> kernels;
  std::vector<KernelImage> images;
  std::string digest;  // of all others
};

// "sm_90", "compute_120 (PTX)".
std::string ImageName(const KernelImage& image);

// Enough digits of the digest to tell files apart.
inline std::string ShortDigest(const KernelFile& file) { return file.digest.substr(0, 12); }

// As a file has it; sets the digest.
std::string WrittenKernelFile(KernelFile& file);

// `place`: for the message. FAILED_PRECONDITION: it is none, of another version, cut short or altered; says which and what mends
// it.
absl::StatusOr<KernelFile> ParseKernelFile(std::string_view bytes, const std::string& place);
// NOT_FOUND: it is not there.
absl::StatusOr<KernelFile> ReadKernelFile(const std::string& path);

// Every kernel of this build in each type, with arguments of the same size. FAILED_PRECONDITION: file and rank are of different
// builds.
absl::Status CheckKernelsOfThisBuild(const KernelFile& file, const std::string& place);

// The best one for a card. FAILED_PRECONDITION: none runs there.
absl::StatusOr<const KernelImage*> ImageFor(const KernelFile& file, int capability, const std::string& place);

}  // namespace motley::engine
