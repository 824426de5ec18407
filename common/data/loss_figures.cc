#include "common/data/loss_figures.h"

#include <cmath>
#include <numbers>

namespace motley {

double Perplexity(double loss) { return std::exp(loss); }

std::optional<double> BitsPerByte(double loss, const DataSummary& data) {
  if (data.kind == DataKind::kRows || data.source_bytes <= 0) return std::nullopt;
  return loss / std::numbers::ln2 * static_cast<double>(data.tokens) / static_cast<double>(data.source_bytes);
}

}  // namespace motley
