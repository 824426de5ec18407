#include "coordinator/state/decide_copies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/count.h"

namespace motley::coordinator {
namespace {

class Decider {
 public:
  explicit Decider(const CopyScene& scene) : scene_(scene) {}

  CopyPlan Run() {
    FindSafe();
    CountMissing();
    DecideCopy();
    DecideDrops();
    return std::move(plan_);
  }

 private:
  const std::vector<UnitedCheckpoint>& All() const { return scene_.held.checkpoints; }

  std::set<NodeName> Takers(const UnitedCheckpoint& checkpoint) const {
    std::set<NodeName> takers;
    for (const auto& [node, offer] : scene_.held.offers) {
      if (scene_.leaving.contains(node)) continue;
      const bool may =
          checkpoint.manifests.contains(node) || (checkpoint.head.epoch < scene_.epoch && scene_.training.contains(node));
      if (may) takers.insert(node);
    }
    return takers;
  }

  // On how many nodes each file should lie. Of a partial view not fewer: those that saved it are wanted, here or not.
  size_t Wanted(const UnitedCheckpoint& checkpoint) const {
    std::set<NodeName> nodes = Takers(checkpoint);
    for (const std::set<NodeName>& holders : checkpoint.holders) nodes.insert(holders.begin(), holders.end());
    for (const HeldFile& file : checkpoint.head.files) nodes.insert(NodeName(file.node));
    for (const NodeName& node : scene_.leaving) nodes.erase(node);
    return std::min(static_cast<size_t>(1 + scene_.copies), nodes.size());
  }

  bool IsGivenUp(const UnitedCheckpoint& checkpoint) const {
    return scene_.go_back.GaveUp(checkpoint.head.epoch, checkpoint.head.step);
  }

  bool IsUsable(const UnitedCheckpoint& checkpoint) const {
    return checkpoint.whole() && !scene_.damaged.contains(checkpoint.head.name) && !IsGivenUp(checkpoint);
  }

  size_t Staying(const std::set<NodeName>& holders) const {
    return static_cast<size_t>(
        std::count_if(holders.begin(), holders.end(), [&](const NodeName& node) { return !scene_.leaving.contains(node); }));
  }

  bool IsSafe(const UnitedCheckpoint& checkpoint) const {
    if (!IsUsable(checkpoint)) return false;
    const size_t wanted = Wanted(checkpoint);
    return wanted > 0 && std::all_of(checkpoint.holders.begin(), checkpoint.holders.end(),
                                     [&](const std::set<NodeName>& holders) { return Staying(holders) >= wanted; });
  }

  void FindSafe() {
    plan_.safe = scene_.safe;
    for (const UnitedCheckpoint& checkpoint : All()) {
      const bool is_safe = IsSafe(checkpoint);
      safe_.push_back(is_safe);
      const std::optional<CheckpointPlace> known = PlaceOf(plan_.safe);
      if (!is_safe || (known && PlaceOf(checkpoint.head) < *known)) continue;
      if (plan_.safe_nodes > 0) continue;  // a newer one is
      plan_.safe = checkpoint.head.name;
      size_t least = checkpoint.holders.empty() ? 1 : checkpoint.holders.front().size();
      for (const std::set<NodeName>& holders : checkpoint.holders) least = std::min(least, holders.size());
      plan_.safe_nodes = static_cast<int>(least);
    }
  }

  // To the nodes with the most room, the largest files first. False: nothing of it can be copied.
  bool Assign(const UnitedCheckpoint& checkpoint) {
    const size_t wanted = Wanted(checkpoint);
    std::map<NodeName, int64_t> room;
    for (const NodeName& node : Takers(checkpoint)) room[node] = scene_.held.offers.at(node).room_bytes;
    std::vector<size_t> order(checkpoint.holders.size());
    for (size_t f = 0; f < order.size(); ++f) order[f] = f;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return checkpoint.head.files[a].bytes > checkpoint.head.files[b].bytes; });
    std::map<NodeName, std::vector<std::string>> files;
    std::string lacks;
    for (const size_t f : order) {
      const HeldFile& file = checkpoint.head.files[f];
      const std::set<NodeName>& holders = checkpoint.holders[f];
      for (size_t have = Staying(holders); have < wanted; ++have) {
        std::optional<NodeName> to = Roomiest(room, file, holders, files, scene_.failed);
        if (!to) to = Roomiest(room, file, holders, files, {});
        if (!to) {
          lacks = absl::StrCat("no other node of the job is here with room for ", file.name, " of node ", file.node, " (",
                               Count(file.bytes, "byte"), ")");
          break;
        }
        files[*to].push_back(file.name);
        if (room[*to] > 0) room[*to] = std::max<int64_t>(room[*to] - file.bytes, 1);
      }
    }
    plan_.lacks = lacks;
    if (files.empty()) return false;
    plan_.copy = checkpoint.head.name;
    plan_.files = std::move(files);
    return true;
  }

  static std::optional<NodeName> Roomiest(const std::map<NodeName, int64_t>& room, const HeldFile& file,
                                          const std::set<NodeName>& holders,
                                          const std::map<NodeName, std::vector<std::string>>& files,
                                          const std::set<NodeName>& avoided) {
    std::optional<NodeName> best;
    for (const auto& [node, bytes] : room) {
      if (avoided.contains(node)) continue;
      const auto given = files.find(node);
      const bool has = holders.contains(node) ||
                       (given != files.end() && std::count(given->second.begin(), given->second.end(), file.name) > 0);
      if (has || (bytes > 0 && bytes < file.bytes)) continue;
      if (!best || bytes > room.at(*best)) best = node;
    }
    return best;
  }

  void CountMissing() {
    const auto newest = std::find_if(All().begin(), All().end(), [&](const auto& each) { return IsUsable(each); });
    if (newest == All().end()) return;
    const size_t wanted = Wanted(*newest);
    for (const std::set<NodeName>& holders : newest->holders) {
      const size_t have = Staying(holders);
      if (have < wanted) plan_.missing += static_cast<int>(wanted - have);
    }
  }

  void DecideCopy() {
    int64_t safe_above = 0;
    for (size_t c = 0; c < All().size(); ++c) {
      const bool superseded = scene_.keep_latest > 0 && safe_above >= scene_.keep_latest;
      safe_above += safe_[c];
      if (All()[c].head.name != scene_.copying || !IsUsable(All()[c]) || safe_[c] || superseded) continue;
      const bool assigned = Assign(All()[c]);
      if (!assigned && !scene_.under_way) continue;
      // What is brought now takes the room that would be asked for again.
      if (scene_.under_way) plan_.lacks.clear();
      plan_.copy = scene_.copying;
      return;
    }
    for (size_t c = 0; c < All().size(); ++c) {
      if (!IsUsable(All()[c])) continue;
      if (!safe_[c]) Assign(All()[c]);
      return;  // the newest
    }
  }

  void DecideDrops() {
    const std::optional<CheckpointPlace> ever = PlaceOf(scene_.safe);
    int64_t safe_above = 0;
    bool below_newest = false;
    std::optional<CheckpointPlace> newest_safe;
    std::set<CheckpointPlace> kept;
    for (size_t c = 0; c < All().size(); ++c) {
      const UnitedCheckpoint& checkpoint = All()[c];
      const std::string& name = checkpoint.head.name;
      const bool superseded = safe_above >= scene_.keep_latest;
      // What was safe before people went back is not known by its name any more.
      const bool behind = ever ? PlaceOf(checkpoint.head) > *ever : checkpoint.head.epoch > scene_.go_back.epoch;
      const bool never_safe = !safe_[c] && behind;
      const bool passed_over = never_safe && below_newest && name != plan_.copy && name != scene_.in_use;
      const bool given_up = IsGivenUp(checkpoint) && newest_safe && newest_safe->first > scene_.go_back.epoch.value();
      const bool goes = given_up || (scene_.keep_latest > 0 && !IsGivenUp(checkpoint) && (superseded || passed_over));
      if (goes) Drop(checkpoint);
      if (!goes) kept.insert(PlaceOf(checkpoint.head));
      if (safe_[c] && !newest_safe) newest_safe = PlaceOf(checkpoint.head);
      safe_above += safe_[c];
      below_newest |= IsUsable(checkpoint);
    }
    for (const auto& [node, left] : scene_.held.unpublished) {
      for (const UnpublishedFiles& files : left) {
        const CheckpointPlace place(files.epoch.value(), files.step);
        if (files.epoch < scene_.epoch && newest_safe && place < *newest_safe && !kept.contains(place))
          plan_.drops[node].push_back({files.epoch, files.step, ""});
      }
    }
  }

  void Drop(const UnitedCheckpoint& checkpoint) {
    for (const NodeName& node : checkpoint.manifests) {
      plan_.drops[node].push_back({checkpoint.head.epoch, checkpoint.head.step, checkpoint.head.manifest_digest});
    }
  }

  const CopyScene& scene_;
  CopyPlan plan_;
  std::vector<bool> safe_;  // by checkpoint
};

}  // namespace

CopyPlan DecideCopies(const CopyScene& scene) { return Decider(scene).Run(); }

}  // namespace motley::coordinator
