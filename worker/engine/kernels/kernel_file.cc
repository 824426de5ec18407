#include "worker/engine/kernels/kernel_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/sha256.h"
#include "worker/engine/kernels/kernel_table.h"

namespace motley::engine {
namespace {

constexpr char kRemedy[] = "`./run setup --gpu` makes it anew";

absl::Status Refused(const std::string& place, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("the kernels' file ", place, " ", why, "; ", kRemedy));
}

// Takes one line off.
std::string_view TakeLine(std::string_view& bytes) {
  const size_t end = bytes.find('\n');
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  return line;
}

nlohmann::json IndexOf(const KernelFile& file) {
  nlohmann::json index = {{"compiler", file.compiler}, {"kernels", nlohmann::json::array()}, {"images", nlohmann::json::array()}};
  for (const CompiledKernel& kernel : file.kernels) {
    index["kernels"].push_back(
        {{"name", kernel.name}, {"dtype", kernel.dtype}, {"symbol", kernel.symbol}, {"argument_bytes", kernel.argument_bytes}});
  }
  for (const KernelImage& image : file.images) {
    index["images"].push_back({{"capability", image.capability}, {"is_ptx", image.is_ptx}, {"bytes", image.code.size()}});
  }
  return index;
}

// Of bytes whose digest is right. Throws nlohmann's exceptions where the index is none.
KernelFile ParseIndex(std::string_view bytes) {
  const nlohmann::json index = nlohmann::json::parse(TakeLine(bytes));
  KernelFile file = {.compiler = index.at("compiler")};
  for (const nlohmann::json& kernel : index.at("kernels")) {
    file.kernels.push_back({kernel.at("name"), kernel.at("dtype"), kernel.at("symbol"), kernel.at("argument_bytes")});
  }
  for (const nlohmann::json& image : index.at("images")) {
    const size_t length = std::min(image.at("bytes").get<size_t>(), bytes.size());
    file.images.push_back({image.at("capability"), image.at("is_ptx"), std::string(bytes.substr(0, length))});
    bytes.remove_prefix(length);
  }
  return file;
}

}  // namespace

std::string ImageName(const KernelImage& image) {
  return image.is_ptx ? absl::StrCat("compute_", image.capability, " (PTX)") : absl::StrCat("sm_", image.capability);
}

std::string WrittenKernelFile(KernelFile& file) {
  std::string body = absl::StrCat(IndexOf(file).dump(), "\n");
  for (const KernelImage& image : file.images) absl::StrAppend(&body, image.code);
  file.digest = Sha256Hex(body);
  return absl::StrCat(kKernelFileName, " ", kKernelFileVersion, "\n", file.digest, "\n", body);
}

absl::StatusOr<KernelFile> ParseKernelFile(std::string_view bytes, const std::string& place) {
  const std::string first(TakeLine(bytes)), begin = absl::StrCat(kKernelFileName, " ");
  int number = 0;
  if (!first.starts_with(begin) || !absl::SimpleAtoi(first.substr(begin.size()), &number)) {
    return Refused(place, "does not begin as one");
  }
  if (number != kKernelFileVersion) {
    return Refused(place, absl::StrCat("is of version ", number, ", this rank reads ", kKernelFileVersion));
  }
  const std::string digest(TakeLine(bytes));
  if (Sha256Hex(bytes) != digest) return Refused(place, "is cut short or altered: its digest is another one");
  try {
    KernelFile file = ParseIndex(bytes);
    file.digest = digest;
    return file;
  } catch (const nlohmann::json::exception& error) {
    return Refused(place, absl::StrCat("has no index: ", error.what()));
  }
}

absl::StatusOr<KernelFile> ReadKernelFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat("no kernels' file ", path, "; ", kRemedy));
  const std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  return ParseKernelFile(bytes, path);
}

absl::Status CheckKernelsOfThisBuild(const KernelFile& file, const std::string& place) {
  for (const kernels::KernelRow& row : kernels::kKernels) {
    for (const kernels::KernelType& type : kernels::kKernelTypes) {
      const auto found = std::find_if(file.kernels.begin(), file.kernels.end(), [&](const CompiledKernel& kernel) {
        return kernel.name == row.name && kernel.dtype == type.name;
      });
      if (found == file.kernels.end()) {
        return Refused(place, absl::StrCat("lacks ", std::string(row.name), " of ", std::string(type.name)));
      }
      if (found->argument_bytes != row.argument_bytes) {
        return Refused(place, absl::StrCat("is of another build: ", std::string(row.name), " takes ", found->argument_bytes,
                                           " bytes of arguments there and ", row.argument_bytes, " here"));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const KernelImage*> ImageFor(const KernelFile& file, int capability, const std::string& place) {
  const KernelImage* best = nullptr;
  for (const KernelImage& image : file.images) {
    if (image.capability > capability || (!image.is_ptx && image.capability / 10 != capability / 10)) continue;
    const bool better = best == nullptr || (best->is_ptx && !image.is_ptx) ||
                        (best->is_ptx == image.is_ptx && image.capability > best->capability);
    if (better) best = &image;
  }
  if (best != nullptr) return best;
  return Refused(place, absl::StrCat("has no code for sm_", capability, ", but for ",
                                     absl::StrJoin(file.images, ", ", [](std::string* out, const KernelImage& image) {
                                       absl::StrAppend(out, ImageName(image));
                                     })));
}

}  // namespace motley::engine
