// The header of a safetensors file. The first bytes of the input say how long the file is.
#include <algorithm>
#include <cstring>

#include "common/weights/safetensors.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  int64_t data_bytes = 0;
  if (size > 0) std::memcpy(&data_bytes, data, std::min(size, sizeof(data_bytes)));
  const std::string text(fuzz::Text(data, size).substr(std::min(size, sizeof(data_bytes))));
  const int64_t header = kSafetensorsLengthBytes + static_cast<int64_t>(text.size());
  const int64_t file_bytes = header + (data_bytes & INT64_MAX) % (INT64_MAX - header);
  const auto tensors = ParseSafetensorsHeader(text, file_bytes, "fuzz.safetensors");
  if (!tensors.ok()) {
    fuzz::Require(tensors.status().message().size() < 2000, "an error repeats what it was given");
    return 0;
  }
  int64_t at = header;
  for (const StoredTensor& tensor : *tensors) {
    fuzz::Require(tensor.begin == at && tensor.end >= at, "bytes are of two tensors, or of none");
    at = tensor.end;
  }
  fuzz::Require(at == file_bytes, "tensors end elsewhere than their file");
  return 0;
}
