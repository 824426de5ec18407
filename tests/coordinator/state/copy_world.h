// Nodes as values, with disks that come and go, and a job that saves on them: what the coordinator decides is done here, and
// checked at each step. For tests of DecideCopies.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "coordinator/state/decide_copies.h"
#include "coordinator/state/unite_checkpoints.h"

namespace motley::coordinator {

struct CopyPolicy {
  int64_t copies = 1, keep_latest = 2;
};

class CopyWorld {
 public:
  using Decide = std::function<CopyPlan(CopyScene)>;

  CopyWorld(int nodes, CopyPolicy policy, Decide decide) : policy_(policy), decide_(std::move(decide)) {
    for (int n = 0; n < nodes; ++n) disks_[NodeName(std::string(1, static_cast<char>('a' + n)))];
    BeginGeneration();
  }

  const std::vector<std::string>& broken() const { return broken_; }
  bool IsHere(const NodeName& node) const { return !away_.contains(node); }
  std::vector<NodeName> nodes() const {
    std::vector<NodeName> all;
    for (const auto& [node, disk] : disks_) all.push_back(node);
    return all;
  }
  const std::string& safe() const { return safe_; }
  std::string newest() const { return published_.empty() ? "" : published_.back(); }
  size_t checkpoints_on(const NodeName& node) const { return disks_.at(node).checkpoints.size(); }

  // All who train write; the first publishes, and of the others those that `publishes`.
  void Save(const std::function<bool(const NodeName&)>& publishes) {
    if (training_.empty()) return;
    HeldCheckpoint head;
    head.step = ++step_;
    head.epoch = epoch_;
    head.name = CheckpointFolderName(head.step, epoch_.value());
    head.manifest_digest = absl::StrCat("digest of ", head.name);
    for (const NodeName& node : training_)
      head.files.push_back({absl::StrCat("rank-", head.files.size(), ".bin"), 10, false, node.value()});
    bool first = true;
    for (const NodeName& node : training_) {
      Disk& disk = disks_.at(node);
      const std::string own = OwnFile(head, node);
      if (first || publishes(node)) {
        disk.checkpoints[head.name] = {head, {own}};
      } else {
        disk.unpublished[head.name] = {epoch_, head.step, {{own, 10, true}}};
      }
      first = false;
    }
    heads_[head.name] = head;
    published_.push_back(head.name);
  }

  // `answers`: who says what it holds; `hears`: who hears what to delete.
  void Look(const std::function<bool(const NodeName&)>& answers, const std::function<bool(const NodeName&)>& hears) {
    const Holdings held = View(answers);
    CopyScene scene{held, training_, epoch_, policy_.copies, policy_.keep_latest, safe_, copying_, !pending_.empty()};
    scene.in_use = newest();
    const CopyPlan plan = decide_(scene);
    if (plan.safe != safe_) NoteSafe(plan.safe, held);
    const std::map<std::string, size_t> before = HoldersOfSafe();
    for (const auto& [node, drops] : plan.drops) {
      if (hears(node)) Drop(node, drops);
    }
    for (const auto& [file, holders] : HoldersOfSafe()) {
      if (holders < before.at(file)) Break(absl::StrCat(file, " of ", safe_, ", which is safe, lost a copy by a deletion"));
    }
    if (plan.copy != copying_ || pending_.empty()) {
      copying_ = plan.copy;
      pending_.clear();
      for (const auto& [node, files] : plan.files) {
        for (const std::string& file : files) pending_.emplace_back(node, file);
      }
    }
    Check();
  }

  // One file of what is under way, or none where no holder is here.
  void CopyOne() {
    if (pending_.empty()) return;
    const auto [node, file] = pending_.front();
    pending_.erase(pending_.begin());
    const bool given = std::any_of(disks_.begin(), disks_.end(), [&](const auto& disk) {
      return IsHere(disk.first) && FilesOf(disk.second, copying_).contains(file);
    });
    if (!given || !IsHere(node)) return;
    Disk& disk = disks_.at(node);
    auto& own = disk.checkpoints[copying_];
    own.head = heads_.at(copying_);
    own.files.insert(file);
    // What it had not given its name is in the folder then.
    if (const auto left = disk.unpublished.find(copying_); left != disk.unpublished.end()) {
      for (const HeldFile& each : left->second.files) own.files.insert(each.name);
      disk.unpublished.erase(left);
    }
  }

  void Leave(const NodeName& node) {
    away_.insert(node);
    if (training_.contains(node)) BeginGeneration();
  }
  void Return(const NodeName& node) {
    away_.erase(node);
    BeginGeneration();
  }
  void LoseDisk(const NodeName& node) {
    disks_.at(node) = {};
    lost_disks_ = true;
    Leave(node);
  }

  // Every file on some disk, of nodes that are away, too.
  bool IsIntact(const std::string& name) const {
    const HeldCheckpoint& head = heads_.at(name);
    return std::all_of(head.files.begin(), head.files.end(), [&](const HeldFile& file) { return Holders(name, file.name) > 0; });
  }
  size_t Holders(const std::string& name, const std::string& file) const {
    size_t holders = 0;
    for (const auto& [node, disk] : disks_) holders += FilesOf(disk, name).contains(file);
    return holders;
  }
  const HeldCheckpoint& HeadOf(const std::string& name) const { return heads_.at(name); }

 private:
  struct Held {
    HeldCheckpoint head;
    std::set<std::string> files;
  };
  struct Disk {
    std::map<std::string, Held> checkpoints;
    std::map<std::string, UnpublishedFiles> unpublished;
  };

  static std::string OwnFile(const HeldCheckpoint& head, const NodeName& node) {
    for (const HeldFile& file : head.files) {
      if (file.node == node.value()) return file.name;
    }
    return "";
  }
  static std::set<std::string> FilesOf(const Disk& disk, const std::string& name) {
    std::set<std::string> files;
    if (const auto held = disk.checkpoints.find(name); held != disk.checkpoints.end()) files = held->second.files;
    if (const auto left = disk.unpublished.find(name); left != disk.unpublished.end()) {
      for (const HeldFile& file : left->second.files) files.insert(file.name);
    }
    return files;
  }
  void Break(std::string what) { broken_.push_back(std::move(what)); }

  // It goes on from the newest that is whole on the nodes that are here and not behind what is safe; else it waits.
  void BeginGeneration() {
    epoch_ = Epoch(epoch_.value() + 1);
    training_.clear();
    bool goes_on = published_.empty();
    for (auto name = published_.rbegin(); name != published_.rend() && !goes_on; ++name) {
      bool whole = true;
      for (const HeldFile& file : heads_.at(*name).files) {
        whole &= std::any_of(disks_.begin(), disks_.end(), [&](const auto& disk) {
          return IsHere(disk.first) && FilesOf(disk.second, *name).contains(file.name);
        });
      }
      goes_on = whole;
      if (*name == safe_) break;
    }
    for (const auto& [node, disk] : disks_) {
      if (goes_on && IsHere(node)) training_.insert(node);
    }
  }

  Holdings View(const std::function<bool(const NodeName&)>& answers) const {
    Holdings holdings;
    std::map<NodeName, HeldCheckpoints> held;
    for (const auto& [node, disk] : disks_) {
      if (!IsHere(node) || !answers(node)) continue;
      holdings.offers[node] = {};
      for (const auto& [name, own] : disk.checkpoints) {
        HeldCheckpoint checkpoint = own.head;
        for (HeldFile& file : checkpoint.files) file.here = own.files.contains(file.name);
        held[node].checkpoints.push_back(std::move(checkpoint));
      }
      for (const auto& [name, left] : disk.unpublished) held[node].unpublished.push_back(left);
      holdings.unpublished[node] = held[node].unpublished;
    }
    holdings.checkpoints = UniteCheckpoints(held, [](const HeldCheckpoint&) { return true; });
    return holdings;
  }

  void NoteSafe(const std::string& name, const Holdings& held) {
    if (name.empty()) return Break("what was safe is forgotten");
    for (const HeldFile& file : heads_.at(name).files) {
      const size_t takers = std::count_if(held.offers.begin(), held.offers.end(), [&](const auto& offer) {
        return disks_.at(offer.first).checkpoints.contains(name) || FilesOf(disks_.at(offer.first), name).contains(file.name);
      });
      if (Holders(name, file.name) < std::min(static_cast<size_t>(1 + policy_.copies), takers))
        Break(absl::StrCat(name, " is said to be safe, and ", file.name, " has too few copies"));
    }
    safe_ = name;
    were_safe_.push_back(name);
  }

  std::map<std::string, size_t> HoldersOfSafe() const {
    std::map<std::string, size_t> holders;
    if (safe_.empty()) return holders;
    for (const HeldFile& file : heads_.at(safe_).files) holders[file.name] = Holders(safe_, file.name);
    return holders;
  }

  void Drop(const NodeName& node, const std::vector<DroppedCheckpoint>& drops) {
    Disk& disk = disks_.at(node);
    for (const DroppedCheckpoint& drop : drops) {
      const std::string name = CheckpointFolderName(drop.step, drop.epoch.value());
      if (drop.manifest_digest.empty()) {
        disk.unpublished.erase(name);
      } else if (drop.manifest_digest == absl::StrCat("digest of ", name)) {
        disk.checkpoints.erase(name);
      }
    }
  }

  // On as many of the nodes that have its manifest as there should be.
  bool HasCopies(const std::string& name) const {
    const size_t nodes =
        std::count_if(disks_.begin(), disks_.end(), [&](const auto& disk) { return disk.second.checkpoints.contains(name); });
    const std::vector<HeldFile>& files = heads_.at(name).files;
    return nodes > 0 && std::all_of(files.begin(), files.end(), [&](const HeldFile& file) {
             return Holders(name, file.name) >= std::min(static_cast<size_t>(1 + policy_.copies), nodes);
           });
  }

  // A disk that was lost takes with it what it will.
  void Check() {
    if (lost_disks_) return;
    for (const std::string& name : were_safe_) {
      const auto newer = std::count_if(std::find(published_.begin(), published_.end(), name) + 1, published_.end(),
                                       [&](const std::string& other) { return HasCopies(other); });
      if (newer < policy_.keep_latest && !IsIntact(name))
        Break(absl::StrCat(name, " was safe and is not whole any more, ", newer, " newer ones have their copies"));
    }
    if (!published_.empty() && !IsIntact(newest())) Break(absl::StrCat(newest(), ", the newest, is not whole any more"));
  }

  const CopyPolicy policy_;
  const Decide decide_;
  std::map<NodeName, Disk> disks_;
  std::set<NodeName> away_, training_;
  std::map<std::string, HeldCheckpoint> heads_;
  std::vector<std::string> published_, were_safe_, broken_;
  std::string safe_, copying_;
  std::vector<std::pair<NodeName, std::string>> pending_;
  Epoch epoch_;
  int64_t step_ = 0;
  bool lost_disks_ = false;
};

}  // namespace motley::coordinator
