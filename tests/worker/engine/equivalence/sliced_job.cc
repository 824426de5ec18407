#include "tests/worker/engine/equivalence/sliced_job.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/model/model_slice.h"
#include "common/program/ownership.h"
#include "common/program/program.h"

namespace motley::engine {
namespace {

// A rank's place, and the groups that it is in.
struct Place {
  const SlicedStage* stage = nullptr;
  int replica = 0, member = 0;
  ModelSlice slice;
  int tp = 0, same_slice = 0, everybody = 0;  // groups
  int before = -1, behind = -1, leader = 0;   // ranks: of the neighbouring stages' leaders, its own
  bool whole() const { return slice.whole(); }
};

struct Layout {
  std::vector<Place> places;  // by rank
  std::vector<std::vector<int32_t>> groups;
};

Layout LayoutOf(const SlicedJob& job) {
  Layout layout;
  int before = -1;
  for (const SlicedStage& stage : job.stages) {
    const auto slices = SlicesOf(job.model, stage.shares).value();
    const int members = static_cast<int>(slices.size()), first = static_cast<int>(layout.places.size());
    const auto rank_of = [&](int replica, int member) { return first + replica * members + member; };
    const int first_group = static_cast<int>(layout.groups.size());
    std::vector<int32_t> all;
    for (int r = 0; r < stage.replicas; ++r) {
      layout.groups.emplace_back();
      for (int m = 0; m < members; ++m) layout.groups.back().push_back(rank_of(r, m));
      all.insert(all.end(), layout.groups.back().begin(), layout.groups.back().end());
    }
    for (int m = 0; m < members; ++m) {
      layout.groups.emplace_back();
      for (int r = 0; r < stage.replicas; ++r) layout.groups.back().push_back(rank_of(r, m));
    }
    layout.groups.push_back(all);
    for (int r = 0; r < stage.replicas; ++r) {
      for (int m = 0; m < members; ++m) {
        Place place{.stage = &stage, .replica = r, .member = m, .slice = slices[m]};
        place.tp = first_group + r;
        place.same_slice = first_group + stage.replicas + m;
        place.everybody = first_group + stage.replicas + members;
        place.before = before;
        place.leader = rank_of(r, 0);
        place.behind = &stage == &job.stages.back() ? -1 : static_cast<int>(all.back()) + 1;
        layout.places.push_back(place);
      }
    }
    before = first;
  }
  return layout;
}

// Every divided run in uneven parts by replica, and what is not divided by rank, the last rank first: so a range of it may go on
// behind what it owns of the last divided tensor.
Ownership OwnershipOf(const SlicedJob& job, const Layout& layout) {
  Ownership ownership;
  const std::vector<UnitSpec> units = ParameterLayout(job.model);
  for (int32_t u = 0; u < static_cast<int32_t>(units.size()); ++u) {
    OwnedRanges ranges;
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < static_cast<int32_t>(layout.places.size()); ++rank) {
      const Place& place = layout.places[rank];
      if (u < place.stage->first_unit || u > place.stage->last_unit) continue;
      all.insert(all.begin(), rank);
      for (const SliceRun& run : RunsOf(units[u], place.slice)) {
        const int64_t end = std::min(run.in_unit + run.elements, units[u].divided_elements);
        const int64_t elements = end - run.in_unit;
        if (elements <= 0) continue;
        const int64_t replicas = place.stage->replicas;
        const auto part = [&](int64_t k) { return run.in_unit + elements * k * (k + 1) / (replicas * (replicas + 1)); };
        ranges.push_back({rank, part(place.replica), part(place.replica + 1)});
      }
    }
    const int64_t undivided = units[u].num_elements - units[u].divided_elements;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto bound = [&](size_t k) {
        return units[u].divided_elements + undivided * static_cast<int64_t>(k) / static_cast<int64_t>(all.size());
      };
      if (bound(i) < bound(i + 1)) ranges.push_back({all[i], bound(i), bound(i + 1)});
    }
    std::sort(ranges.begin(), ranges.end(), [](const OwnedRange& a, const OwnedRange& b) { return a.begin < b.begin; });
    ownership.Add(ranges);
  }
  return ownership;
}

class ProgramWriter {
 public:
  ProgramWriter(const SlicedJob& job, const Layout& layout, int rank, bool training)
      : job_(job),
        at_(layout.places[rank]),
        rank_(rank),
        training_(training),
        units_(ParameterLayout(ShapeOf(job.model, at_.slice))),
        head_(static_cast<int>(units_.size()) - 1) {
    WriteHeader(layout);
  }

  Program Write() {
    for (int u = first(); u <= last(); ++u) ForElements(u, "gather", absl::StrCat("buffer=", u - first()));
    for (size_t m = 0; m < microbatches_.size(); ++m) Forward(static_cast<int>(m));
    for (size_t m = 0; training_ && m < microbatches_.size(); ++m) Backward(static_cast<int>(m));
    if (training_ && job_.split) Weights();
    for (int u = last(); training_ && u >= first(); --u) ForElements(u, "reduce_scatter", absl::StrCat("grad=", u - first()));
    Line("reduce_scalars");
    if (training_) Line("optimizer_step");
    return ParseProgram(text_).value();
  }

 private:
  int first() const { return at_.stage->first_unit; }
  int last() const { return at_.stage->last_unit; }
  bool IsLayer(int u) const { return u > 0 && u < head_; }

  void WriteHeader(const Layout& layout) {
    const int64_t batch = training_ ? job_.config.training.global_batch_size : job_.config.data.validation_samples;
    const int64_t own = batch / at_.stage->replicas, first_sample = own * at_.replica;
    const int64_t count = training_ ? job_.microbatches : 1;
    for (int64_t m = 0; m < count; ++m) microbatches_.push_back({own * m / count, own * (m + 1) / count});
    std::vector<std::string> mbs, holds, groups, buffers;
    for (const auto& [begin, end] : microbatches_) mbs.push_back(absl::StrCat(end - begin, "@", first_sample + begin));
    for (auto& [begin, end] : microbatches_) begin += first_sample, end += first_sample;
    for (int u = first(); u <= last(); ++u) {
      holds.push_back(absl::StrCat(u));
      buffers.push_back(absl::StrCat(units_[u].num_elements, job_.homes ? absl::StrCat(":", u) : ""));
    }
    for (const std::vector<int32_t>& group : layout.groups) groups.push_back(absl::StrJoin(group, ","));
    const std::string list = absl::StrJoin(buffers, ",");
    text_ = absl::StrCat("program 6 ", training_ ? "training" : "evaluation", " rank ", rank_, " of ", layout.places.size(),
                         " units ", units_.size(), " microbatches ", absl::StrJoin(mbs, ","), "\nholds ",
                         absl::StrJoin(holds, ","), "\ngroups ", absl::StrJoin(groups, " "), "\nparameters ", list,
                         "\ngradients ", training_ ? list : "-", "\noffloads -\nslots -\n");
  }

  void Line(const std::string& operation) {
    absl::StrAppend(&text_, next_, " ", operation, previous_ >= 0 ? absl::StrCat(" after=", previous_) : "", "\n");
    previous_ = next_++;
  }
  // What is divided among the ranks of the same slice, the rest among all of the stage.
  void ForElements(int u, const std::string& operation, const std::string& buffer) {
    const int64_t divided = at_.whole() ? 0 : units_[u].divided_elements, rest = units_[u].num_elements - divided;
    const auto line = [&](const std::string& elements, int group) {
      Line(absl::StrCat(operation, " block=", u, elements, " ", buffer, " group=", group));
    };
    if (divided > 0) line(rest > 0 ? absl::StrCat(" elements=", divided, "@0") : "", at_.same_slice);
    if (rest > 0) line(divided > 0 ? absl::StrCat(" elements=", rest, "@", divided) : "", at_.everybody);
  }
  void Sum(int u, int m, const std::string& segment, const std::string& of) {
    if (at_.whole()) return;
    Line(absl::StrCat("all_reduce_activation block=", u, " mb=", m, segment, " of=", of, " group=", at_.tp));
  }
  std::string Tied(int u, const char* key) const {
    return u == head_ && job_.model.tie_embeddings ? absl::StrCat(" ", key, "=0") : "";
  }
  std::string Samples(int m) const {
    return absl::StrCat(" first=", microbatches_[m].first, " samples=", microbatches_[m].second - microbatches_[m].first);
  }
  // What the border to a unit that another stage holds brings.
  void Receive(int u, int m, const std::string& operation, const std::string& of, int from) {
    if (rank_ == at_.leader) Line(absl::StrCat(operation, " block=", u, " mb=", m, Samples(m), " peer=", from));
    if (at_.whole()) return;
    const int received = previous_;
    Line(absl::StrCat("broadcast_activation block=", u, " mb=", m, " of=", of, " group=", at_.tp, " root=", at_.leader));
    if (job_.overtakes && rank_ == at_.leader) previous_ = received;
  }

  void Forward(int m) {
    for (int u = first(); u <= last(); ++u) {
      if (u == first() && u > 0) Receive(u, m, "receive_activation", "activation", at_.before);
      const bool keeps_less = training_ && !job_.recomputed.empty() && u > 0;
      const std::string ops = keeps_less && IsLayer(u) && job_.recomputed != "full" ? " ops=" + job_.recomputed : "";
      const std::string keep = absl::StrCat(Tied(u, "tied"), " keep=",
                                            keeps_less  ? "boundary"
                                            : training_ ? "all"
                                                        : "nothing",
                                            ops);
      const auto forward = [&](const std::string& segment) {
        Line(absl::StrCat("forward block=", u, " mb=", m, segment, " buffer=", u - first(), keep));
      };
      if (at_.whole() || u == 0) {
        forward("");
        if (u < head_) Sum(u, m, "", "activation");
      } else if (u == head_) {
        forward(" segment=logits");
        Sum(u, m, " segment=logits", "rows");
        forward(" segment=loss");
      } else {
        for (const std::string segment : {" segment=attention", " segment=mlp"}) {
          forward(segment);
          Sum(u, m, segment, "activation");
        }
      }
    }
    if (last() == head_ || rank_ != at_.leader) return;
    Line(absl::StrCat("send_activation block=", last() + 1, " mb=", m, Samples(m), " peer=", at_.behind));
  }

  void Backward(int m) {
    for (int u = last(); u >= first(); --u) {
      if (u == last() && u < head_) Receive(u + 1, m, "receive_gradient", "gradient", at_.behind);
      const std::string buffers = absl::StrCat(" buffer=", u - first(), Tied(u, "tied"));
      if (!job_.recomputed.empty() && u > 0) {
        const std::string ops = IsLayer(u) && job_.recomputed != "full" ? " ops=" + job_.recomputed : "";
        Line(absl::StrCat("recompute block=", u, " mb=", m, buffers, ops));
      }
      const auto backward = [&](const std::string& segment) {
        Line(job_.split
                 ? absl::StrCat("backward_input block=", u, " mb=", m, segment, buffers)
                 : absl::StrCat("backward block=", u, " mb=", m, segment, buffers, " grad=", u - first(), Tied(u, "tied_grad")));
        if (u > 0) Sum(u, m, segment, "gradient");
      };
      if (at_.whole() || !IsLayer(u)) {
        backward("");
      } else {
        backward(" segment=mlp");
        backward(" segment=attention");
      }
    }
    if (first() == 0 || rank_ != at_.leader) return;
    Line(absl::StrCat("send_gradient block=", first(), " mb=", m, Samples(m), " peer=", at_.before));
  }

  void Weights() {
    for (size_t m = 0; m < microbatches_.size(); ++m) {
      for (int u = last(); u >= first(); --u) {
        const bool in_segments = !at_.whole() && IsLayer(u) && m % 2 == 1;
        for (const std::string segment : {in_segments ? " segment=mlp" : "", " segment=attention"}) {
          if (!in_segments && !segment.empty()) continue;
          Line(absl::StrCat("backward_weight block=", u, " mb=", m, segment, " grad=", u - first(), Tied(u, "tied_grad")));
        }
      }
    }
  }

  const SlicedJob& job_;
  const Place& at_;
  const int rank_;
  const bool training_;
  const std::vector<UnitSpec> units_;  // of the slice
  const int head_;
  std::vector<std::pair<int64_t, int64_t>> microbatches_;  // samples of the batch
  std::string text_;
  int next_ = 0, previous_ = -1;
};

}  // namespace

std::vector<RankAssignment> AssignmentsOf(const SlicedJob& job) {
  const Layout layout = LayoutOf(job);
  RankAssignment common;
  common.job = JobId("job");
  common.epoch = Epoch(1);
  common.model = job.model;
  common.config = job.config;
  common.ownership = OwnershipOf(job, layout);
  for (size_t rank = 0; rank < layout.places.size(); ++rank) {
    common.devices.push_back(DeviceId(absl::StrCat("n", rank, "/gpu0")));
    common.data_addresses.push_back("127.0.0.1");
  }
  std::vector<RankAssignment> assignments(layout.places.size(), common);
  for (int rank = 0; rank < static_cast<int>(assignments.size()); ++rank) {
    RankAssignment& own = assignments[rank];
    own.rank = rank;
    own.device.id = own.devices[rank];
    own.slice = layout.places[rank].slice;
    own.program = ProgramWriter(job, layout, rank, true).Write();
    own.evaluation = ProgramWriter(job, layout, rank, false).Write();
  }
  return assignments;
}

}  // namespace motley::engine
