// What kernels reach of a data sheet, by family of cards. Of cards that nobody profiled; what was measured on a card goes before
// it. docs/inside/card-parts.md has where each number comes from, and how far it is off where its source is left out.
#pragma once

#include <string_view>

namespace motley {

// Families differ in how strong their tensor cores are beside all else, and in how their boards reach each other.
enum class CardFamily {
  kOther,       // no run of one was compared
  kGeForceRtx,  // sums of half types at half the rate, which kernels therefore reach; no peer access over PCIe
  kTitanRtx,    // no run of one was compared; no peer access over PCIe
  kWorkstationBlackwell,
  kAmpereServer,
  kHopperServer,
  kBlackwellServer,
};

struct CardParts {
  double matrix = 0.52;  // of the dense peak of half types: products; 0.52: the median of all published series
  // Of the same peak: attention over a long sequence. A shorter one and small heads reach less, where `attention_tokens` is
  // there: part x head / (head + 16) x tokens / (tokens + attention_tokens).
  double attention = 0.52;
  double attention_tokens = 0;  // 0: of a family of which no step was compared
  double memory = 0.8;          // of the memory's rate, by what passes over activations
  double deviation = 0.35;      // root mean square of ln(predicted / measured) of steps
  // 0.52 holds with launches before the work and the loss's passes behind the head's products, as it was found. Parts that were
  // compared with steps hold with launches that go on ahead, and passes that come on top.
  bool compared() const { return attention_tokens > 0; }
  friend bool operator==(const CardParts&, const CardParts&) = default;
};

// Of attention with heads of `head_dim` over `tokens`.
double AttentionPart(const CardParts& parts, double head_dim, double tokens);

struct CardFamilyRow {
  std::string_view name;
  CardParts parts;
  // Whether two boards in one machine reach each other over PCIe past the host's memory.
  bool peer_access = true;
  std::string_view source;  // of the parts; a sentence
};
const CardFamilyRow& RowOf(CardFamily family);

}  // namespace motley
