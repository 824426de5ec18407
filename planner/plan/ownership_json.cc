#include "planner/plan/ownership_json.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "nlohmann/json.hpp"
#include "planner/plan/each_rank.h"
#include "planner/plan/ownership.h"

namespace motley::planner {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostBlocks = int64_t{1} << 16;  // as programs have

std::vector<std::string> DevicesByRank(const Plan& plan) {
  std::vector<std::string> devices;
  ForEachRank(plan, [&](const RankPlan& rank) { devices.push_back(rank.device.value()); });
  return devices;
}

// [device, begin, end]
void ReadRange(const JsonReader& item, const std::map<std::string, int32_t>& ranks, OwnedRanges* ranges) {
  std::string device;
  OwnedRange range;
  int field = 0;
  item.ForEach([&](const JsonReader& part) {
    if (field == 0) part.Read(&device);
    if (field == 1) part.Read(&range.begin);
    if (field == 2) part.Read(&range.end);
    ++field;
  });
  if (field != 3 || range.begin < 0 || range.end < 0) {
    return item.Fail("must be [device, first element, element behind the last]");
  }
  const auto rank = ranks.find(device);
  if (rank == ranks.end()) return item.Fail(absl::StrCat("the plan has no device ", Quoted(device)));
  range.rank = rank->second;
  ranges->push_back(range);
}

// By block; none = not said yet.
using RangesByBlock = std::vector<std::optional<OwnedRanges>>;

void ReadAlike(const JsonReader& reader, const std::map<std::string, int32_t>& ranks, RangesByBlock* by_block) {
  reader.Keys({"blocks", "ranges"});
  OwnedRanges ranges;
  if (!reader.Has("blocks") || !reader.Has("ranges")) return reader.Fail("needs blocks and ranges");
  reader["ranges"].ForEach([&](const JsonReader& item) { ReadRange(item, ranks, &ranges); });
  reader["blocks"].ForEach([&](const JsonReader& item) {
    std::vector<int64_t> span;
    item.Read(&span);
    if (span.size() != 2 || span[0] < 0 || span[1] < span[0] || span[1] >= kMostBlocks) {
      return item.Fail("must be [first block, last block]");
    }
    if (static_cast<int64_t>(by_block->size()) <= span[1]) by_block->resize(static_cast<size_t>(span[1]) + 1);
    for (int64_t block = span[0]; block <= span[1]; ++block) {
      std::optional<OwnedRanges>& of_block = (*by_block)[static_cast<size_t>(block)];
      if (of_block) return item.Fail(absl::StrCat("block ", block, " is there twice"));
      of_block = ranges;
    }
  });
}

}  // namespace

Json OwnershipToJson(const Plan& plan) {
  const std::vector<std::string> devices = DevicesByRank(plan);
  Json json = Json::array();
  for (const Ownership::Alike& alike : plan.ownership->AlikeBlocks()) {
    Json blocks = Json::array(), ranges = Json::array();
    for (const BlockSpan& span : alike.blocks) blocks.push_back({span.first, span.last});
    for (const OwnedRange& range : *alike.ranges) ranges.push_back({devices[range.rank], range.begin, range.end});
    json.push_back({{"blocks", std::move(blocks)}, {"ranges", std::move(ranges)}});
  }
  return json;
}

void ReadOwnership(const JsonReader& reader, Plan* plan) {
  std::map<std::string, int32_t> ranks;
  bool shares = false;
  ForEachRank(*plan, [&](const RankPlan& rank) {
    ranks.emplace(rank.device.value(), static_cast<int32_t>(ranks.size()));
    shares |= rank.shard_ratio != 0;
  });
  if (shares) return reader.Fail("stands beside shard_ratio, which says the same; leave out one of them");
  RangesByBlock by_block;
  reader.ForEach([&](const JsonReader& item) { ReadAlike(item, ranks, &by_block); });
  Ownership ownership;
  for (size_t block = 0; block < by_block.size(); ++block) {
    if (!by_block[block]) return reader.Fail(absl::StrCat("block ", block, " is missing"));
    ownership.Add(*by_block[block]);
  }
  plan->ownership = std::move(ownership);
  SetShardRatios(plan);
}

}  // namespace motley::planner
