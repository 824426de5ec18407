#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "planner/strategies/zorse/zorse_model.h"
#include "planner/util/at.h"
#include "planner/util/infinity.h"

namespace motley::planner {

int64_t ZorseModel::MostLayers(ZorseChoice* trial, size_t stage, bool even_shards) const {
  const int64_t least = trial->ministages;  // every ministage has a layer
  trial->layers[stage] = least;
  if (!FindRoom(*trial, stage, even_shards).fits) return 0;
  int64_t low = least, high = setting_.workload.model.num_layers - least * static_cast<int64_t>(trial->groups.size() - 1);
  while (low < high) {
    trial->layers[stage] = (low + high + 1) / 2;
    if (FindRoom(*trial, stage, even_shards).fits)
      low = trial->layers[stage];
    else
      high = trial->layers[stage] - 1;
  }
  return low;
}

bool ZorseModel::SplitLayersByMemory(bool even_shards, ZorseChoice* choice) const {
  struct Way {  // of one stage and load
    int64_t most = 0;
    double layer_seconds = 0, extra_seconds = 0;
  };
  const int64_t total = setting_.workload.model.num_layers, least = choice->ministages;
  const size_t stages = choice->groups.size();
  ZorseChoice trial = *choice;
  trial.layers.assign(stages, least);
  const auto way_of = [&](size_t s, const ZorseLoad* load) {
    trial.loads[s] = load;
    Way way{MostLayers(&trial, s, even_shards), load->layer_seconds(), 0};
    if (s == 0) way.extra_seconds += ExtraSeconds(*load, *choice->groups[s], UnitKind::kEmbedding);
    if (s + 1 == stages) way.extra_seconds += ExtraSeconds(*load, *choice->groups[s], UnitKind::kHead);
    return way;
  };
  std::vector<Way> first, second;  // the second where the first does not fit
  for (size_t s = 0; s < stages; ++s) first.push_back(way_of(s, choice->loads[s]));
  if (std::all_of(first.begin(), first.end(), [](const Way& way) { return way.most == 0; })) return false;
  std::vector<int64_t> most;
  for (size_t s = 0; s < stages; ++s) {
    second.push_back(choice->frugal.empty() ? first[s] : way_of(s, choice->frugal[s]));
    most.push_back(std::max(first[s].most, second[s].most));
    if (most[s] == 0) return false;
  }
  if (std::accumulate(most.begin(), most.end(), int64_t{0}) < total) return false;
  // The bottleneck's exact optimum by giving the next layer to the stage that ends first with it: no stage gets faster by a
  // layer more.
  std::vector<int64_t> layers(stages, least);
  for (int64_t given = least * static_cast<int64_t>(stages); given < total; ++given) {
    size_t next = stages;
    double ends = kInfinity;
    for (size_t s = 0; s < stages; ++s) {
      if (layers[s] == most[s]) continue;
      const Way& way = layers[s] < first[s].most ? first[s] : second[s];
      const double t = way.extra_seconds + static_cast<double>(layers[s] + 1) * way.layer_seconds;
      if (t < ends) ends = t, next = s;
    }
    ++layers[next];
  }
  for (size_t s = 0; s < stages; ++s) {
    if (layers[s] > first[s].most) choice->loads[s] = choice->frugal[s];
  }
  choice->layers = std::move(layers);
  return true;
}

bool StepsInTurn(const Setting& setting, const ZorseChoice& choice) {
  return choice.offload.parameters && setting.limits().steps_in_turn;
}

RankDuty ZorseModel::Duty(const ZorseChoice& choice, size_t stage, int kind, double share) const {
  const bool host = choice.groups[stage]->host_known;
  RankDuty duty;
  duty.kind = kind;
  duty.layers = choice.layers[stage];
  duty.ministages = choice.ministages;
  duty.largest_ministage = (choice.layers[stage] + choice.ministages - 1) / choice.ministages;
  duty.embedding = stage == 0;
  duty.head = stage + 1 == choice.groups.size();
  duty.schedule = ScheduleFamily::kLayered;
  duty.stage = static_cast<int>(stage);
  duty.num_stages = static_cast<int>(choice.groups.size());
  duty.zero_stage = 2;
  duty.share = share;
  duty.recompute = choice.loads[stage]->recompute ? OpSet::All() : OpSet::None();
  if (host) duty.offload = choice.offload;
  duty.steps_in_turn = StepsInTurn(setting_, choice);
  duty.group_size = static_cast<int64_t>(choice.groups[stage]->devices.size());
  return duty;
}

MemoryByPurpose ZorseModel::Memory(const ZorseChoice& choice, size_t stage, size_t member, double share) const {
  const ZorseLoad::Member& load = choice.loads[stage]->members[member];
  const int kind = setting_.KindOf(choice.groups[stage]->devices[member]);
  return MemoryOf(setting_.costs, Duty(choice, stage, kind, share), load.count, load.size, load.last);
}

ZorseModel::Room ZorseModel::FindRoom(const ZorseChoice& choice, size_t stage, bool even_shards) const {
  const ZorseGroup& group = *choice.groups[stage];
  const ZorseLoad& load = *choice.loads[stage];
  const double even = 1.0 / static_cast<double>(group.devices.size());
  Room room;
  std::map<int, int64_t> devices_of_kind;
  for (int device : group.devices) ++devices_of_kind[setting_.KindOf(device)];
  double placed = 0, state_bytes = 0;
  for (size_t member : load.largest) {
    const int device = group.devices[member];
    const int64_t usable = setting_.UsableBytes(device);
    const int64_t without = Memory(choice, stage, member, even_shards ? even : 0).total();
    if (without > usable && without - usable > room.missing_bytes) room.missing_bytes = without - usable, room.device = device;
    if (even_shards) continue;
    state_bytes = static_cast<double>(Memory(choice, stage, member, 1).total() - without);
    const double cap = without > usable ? 0 : state_bytes <= 0 ? 1 : static_cast<double>(usable - without) / state_bytes;
    room.caps.push_back(std::min(1.0, cap));
    placed += static_cast<double>(devices_of_kind[setting_.KindOf(device)]) * room.caps.back();
  }
  if (!even_shards && room.missing_bytes == 0 && placed < 1) {
    room.missing_bytes = static_cast<int64_t>((1 - placed) * state_bytes) + 1;
    room.device = group.devices[load.largest.back()];
  }
  room.fits = room.missing_bytes == 0;
  return room;
}

std::vector<double> ZorseModel::Shares(const ZorseChoice& choice, size_t stage, bool even_shards) const {
  const ZorseGroup& group = *choice.groups[stage];
  const Room room = FindRoom(choice, stage, even_shards);
  if (!room.fits) return {};
  const double even = 1.0 / static_cast<double>(group.devices.size());
  std::vector<double> shares(group.devices.size(), even);
  if (even_shards) return shares;
  std::map<int, double> cap_of_kind;
  for (size_t i = 0; i < room.caps.size(); ++i) {
    cap_of_kind[setting_.KindOf(group.devices[choice.loads[stage]->largest[i]])] = room.caps[i];
  }
  // A water line over the caps.
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double line = (low + high) / 2;
    double sum = 0;
    for (int device : group.devices) sum += std::min(line, cap_of_kind[setting_.KindOf(device)]);
    if (sum < 1)
      low = line;
    else
      high = line;
  }
  double sum = 0;
  for (size_t i = 0; i < shares.size(); ++i) sum += shares[i] = std::min(high, cap_of_kind[setting_.KindOf(group.devices[i])]);
  for (double& share : shares) share /= sum;
  return shares;
}

int ZorseModel::HostLack(const ZorseChoice& choice, int64_t* missing_bytes) const {
  *missing_bytes = 0;
  if (!choice.offload.any()) return -1;
  std::vector<int64_t> host(setting_.cluster.nodes.size(), 0);
  for (size_t s = 0; s < choice.groups.size(); ++s) {
    const ZorseGroup& group = *choice.groups[s];
    if (!group.host_known) continue;
    std::map<int, int64_t> of_kind;
    for (size_t member : choice.loads[s]->largest) {
      of_kind[setting_.KindOf(group.devices[member])] =
          Memory(choice, s, member, 1.0 / static_cast<double>(group.devices.size())).host;
    }
    for (int device : group.devices) host[At(setting_.cluster.devices[At(device)].node)] += of_kind[setting_.KindOf(device)];
  }
  int worst = -1;
  for (size_t n = 0; n < host.size(); ++n) {
    const int64_t lack = host[n] - setting_.cluster.nodes[n].host_memory_bytes;
    if (host[n] > 0 && lack > *missing_bytes) *missing_bytes = lack, worst = static_cast<int>(n);
  }
  return worst;
}

ZorseFit ZorseModel::Fit(const ZorseChoice& choice, bool even_shards) const {
  ZorseFit fit;
  for (size_t s = 0; s < choice.groups.size(); ++s) {
    const Room room = FindRoom(choice, s, even_shards);
    if (room.missing_bytes > fit.missing_bytes) fit.missing_bytes = room.missing_bytes, fit.device = room.device;
  }
  if (fit.missing_bytes == 0) fit.node = HostLack(choice, &fit.missing_bytes);
  return fit;
}

}  // namespace motley::planner
