#include "planner/strategies/catalog.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"

namespace motley::planner {
namespace {

// What others call what is here.
struct OtherName {
  std::string_view name, here;
};
constexpr OtherName kOtherNames[] = {{"ddp", "fsdp --zero-stage 0"},
                                     {"zero1", "fsdp --zero-stage 1"},
                                     {"zero2", "fsdp --zero-stage 2"},
                                     {"zero3", "fsdp --zero-stage 3"},
                                     {"zero", "fsdp --zero-stage 3"},
                                     {"deepspeed", "fsdp --zero-stage 3"},
                                     {"tp", "megatron"},
                                     {"pp", "megatron"}};

// Empty: nothing is near.
std::string WhatWasMeant(std::string_view name, const std::vector<std::string>& known) {
  std::string word = absl::AsciiStrToLower(std::string(name));
  std::erase_if(word, [](char c) { return c == '-' || c == '_'; });
  for (const OtherName& other : kOtherNames) {
    if (other.name == word) return std::string(other.here);
  }
  return NearestWord(name, known);
}

}  // namespace

const std::vector<CatalogEntry>& Catalog() {
  // Order: even, fsdp, megatron, cephalo, zorse, poplar, hexiscale, baton, auto.
  static const std::vector<CatalogEntry> entries = {
      {"even", "equal batches and shards, layered: what uneven ones are measured against", &PlanEven},
      {"fsdp", "fully sharded data parallelism as PyTorch has it, tuned (arXiv 2304.11277)", &PlanFsdp, true},
      {"megatron", "uniform tensor x pipeline x data parallelism (Megatron-LM, SC 2021)", &PlanMegatron, true},
      {"cephalo", "batches by speed, shards by memory, exact (arXiv 2411.01075)", &PlanCephalo, true},
      {"zorse", "pipelines of groups, ministages, offload (arXiv 2507.10392)", &PlanZorse, true},
      {"poplar", "batches by speed curves and memory, ZeRO 0 to 3 (Poplar, AAAI 2025)", &PlanPoplar, true},
      {"hexiscale", "pipelines of different shape, graph partition (arXiv 2409.01143)", &PlanHexiscale, true},
      {"baton", "layers, unequal tensor-parallel shares, recomputation by operator (Baton)", &PlanBaton, true},
      {"auto", "the best plan of the whole language that a bounded search finds", &PlanAuto},
  };
  return entries;
}

absl::StatusOr<CatalogEntry> FindInCatalog(std::string_view name) {
  std::vector<std::string> known;
  std::string list;
  for (const CatalogEntry& entry : Catalog()) {
    if (entry.name == name) return entry;
    known.emplace_back(entry.name);
    absl::StrAppend(&list, list.empty() ? "" : ", ", known.back());
  }
  const std::string nearest = WhatWasMeant(name, known);
  return absl::NotFoundError(absl::StrCat("strategy '", std::string(name), "' is not known; ",
                                          nearest.empty() ? "" : absl::StrCat("did you mean '", nearest, "'? "), "known are ",
                                          list));
}

}  // namespace motley::planner
