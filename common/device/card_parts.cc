#include "common/device/card_parts.h"

#include <cstdlib>

namespace motley {
namespace {

constexpr double kHeadColumns = 16;  // of a head, at which attention reaches half

constexpr CardFamilyRow kOtherRow = {"other", {}, true, "0.52 of the peak, as for every card of which no run was compared"};
constexpr CardFamilyRow kTitanRtxRow = {
    "Titan RTX", {}, false, "0.52 of the peak, as for every card of which no run was compared"};
constexpr CardFamilyRow kGeForceRtxRow = {"GeForce RTX",
                                          {.matrix = 0.9, .attention = 0.9, .attention_tokens = 256, .deviation = 0.2},
                                          false,
                                          "0.9 of the halved peak: LLaMA-Factory's and torchtune's steps on the RTX 4090"};
constexpr CardFamilyRow kWorkstationBlackwellRow = {
    "RTX PRO Blackwell",
    {.matrix = 0.75, .attention = 0.75, .attention_tokens = 256, .deviation = 0.25},
    true,
    "0.75 of the peak: steps of llmq on the RTX PRO 6000"};
constexpr CardFamilyRow kAmpereServerRow = {"A100",
                                            {.matrix = 0.6, .attention = 0.68, .attention_tokens = 512, .deviation = 0.19},
                                            true,
                                            "0.6 of the peak: the median of FlagPerf's steps on A100 and A800"};
constexpr CardFamilyRow kHopperServerRow = {
    "Hopper",
    {.matrix = 0.62, .attention = 0.4, .attention_tokens = 1024, .memory = 0.35, .deviation = 0.25},
    true,
    "0.62 of the peak: what Motley's kernels of one step on an H200 take, recorded one by one"};
constexpr CardFamilyRow kBlackwellServerRow = {
    "B200",
    {.attention = 0.12, .attention_tokens = 1024, .memory = 0.35, .deviation = 0.35},
    true,
    "0.52 of the peak, and 0.1 for attention: prime-rl's two runs on the B200, whose attention is flash 2"};

}  // namespace

double AttentionPart(const CardParts& parts, double head_dim, double tokens) {
  if (parts.attention_tokens <= 0) return parts.attention;
  return parts.attention * head_dim / (head_dim + kHeadColumns) * tokens / (tokens + parts.attention_tokens);
}

const CardFamilyRow& RowOf(CardFamily family) {
  switch (family) {
    case CardFamily::kOther:
      return kOtherRow;
    case CardFamily::kGeForceRtx:
      return kGeForceRtxRow;
    case CardFamily::kTitanRtx:
      return kTitanRtxRow;
    case CardFamily::kWorkstationBlackwell:
      return kWorkstationBlackwellRow;
    case CardFamily::kAmpereServer:
      return kAmpereServerRow;
    case CardFamily::kHopperServer:
      return kHopperServerRow;
    case CardFamily::kBlackwellServer:
      return kBlackwellServerRow;
  }
  std::abort();
}

}  // namespace motley
