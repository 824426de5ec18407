#include "common/session/loss_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/data/loss_figures.h"

namespace motley {
namespace {

std::string NotFiniteText(double value) { return std::isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf"; }

// "18.07", "30215", "1.5e+80"; "inf".
std::string PerplexityText(double perplexity) {
  if (!std::isfinite(perplexity)) return NotFiniteText(perplexity);
  return perplexity < 1e3   ? absl::StrFormat("%.2f", perplexity)
         : perplexity < 1e6 ? absl::StrFormat("%.0f", perplexity)
                            : absl::StrFormat("%.3g", perplexity);
}

}  // namespace

std::string LossText(double loss, int digits) {
  return std::isfinite(loss) ? absl::StrFormat("%.*f", digits, loss) : NotFiniteText(loss);
}

std::string NormText(double norm) { return std::isfinite(norm) ? absl::StrFormat("%.3g", norm) : NotFiniteText(norm); }

std::string ValidationText(double loss, std::optional<double> bits_per_byte) {
  if (!std::isfinite(loss)) return LossText(loss);
  const std::string bits = bits_per_byte ? absl::StrFormat("; %.2f bits a byte", *bits_per_byte) : "";
  return absl::StrCat(LossText(loss), " (perplexity ", PerplexityText(Perplexity(loss)), bits, ")");
}

}  // namespace motley
