// The collective lane: parameters and gradients, the sums of tensor-parallel groups, the scalars.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/executor_pass.h"
#include "worker/engine/model/optimizer.h"

namespace motley::engine {
namespace {

// Of one member everything.
Owners OnlyOwner(const std::vector<int32_t>& members, int32_t owner, int64_t elements) {
  Owners owners(members.size());
  owners[static_cast<size_t>(std::find(members.begin(), members.end(), owner) - members.begin())] = {{0, elements}};
  return owners;
}

}  // namespace

// What the rank has of a unit, in ascending order: what it owns, or keeps in a shard.
template <typename Use>
void Executor::Pass::ForEachPart(int32_t unit, at::Tensor RangeState::*owned, const std::vector<UnitArray>& buffers,
                                 int32_t shard, Use use) {
  if (shard < 0) {
    for (RangeState& own : e_.state_.Of(unit)) use(own.begin, own.end, own.*owned);
    return;
  }
  for (const SliceRun& run : e_.arrays_.shards().runs()[static_cast<size_t>(unit)]) {
    use(run.in_unit, run.in_unit + run.elements,
        buffers[static_cast<size_t>(shard)].flat().narrow(0, run.in_slice, run.elements));
  }
}

absl::Status Executor::Pass::Do(const Gather& op) {
  const UnitBuffer& buffer = program_.parameter_buffers[op.buffer];
  const MovedElements moved = e_.arrays_.MovedBy(program_, op);
  const at::Tensor array = e_.parameter_buffers_[op.buffer].flat().narrow(0, moved.within.begin, moved.within.size());
  // In a home is what the rank owns, unless it must be cast to the compute type and the step has not done it; from the host it
  // was brought there.
  const bool is_cast = !e_.precision_.mixed() || (training_ && e_.cast_in_home_[static_cast<size_t>(op.unit)] != 0);
  const bool there = moved.shard < 0 && (program_.offloads.parameters || (buffer.home_of >= 0 && is_cast));
  const auto give = [&](int64_t begin, int64_t end, const at::Tensor& part) {
    for (const LocalPiece& piece : e_.arrays_.In(buffer).PiecesOf(op.unit, begin, end, moved.within)) {
      array.narrow(0, piece.in_array, piece.elements).copy_(part.narrow(0, piece.in_range, piece.elements));
    }
  };
  if (!there) ForEachPart(op.unit, &RangeState::parameter, e_.parameter_buffers_, moved.shard, give);
  return e_.communicator_.AllGather(op.group, array.mutable_data_ptr(), e_.precision_.compute, moved.owners);
}

absl::Status Executor::Pass::Do(const ReduceScatter& op) {
  const UnitBuffer& buffer = program_.gradient_buffers[op.grad];
  const MovedElements moved = e_.arrays_.MovedBy(program_, op);
  const at::Tensor array = e_.gradient_buffers_[op.grad].flat().narrow(0, moved.within.begin, moved.within.size());
  MOTLEY_RETURN_IF_ERROR(e_.communicator_.ReduceScatter(op.group, array.mutable_data_ptr(), e_.precision_.master, moved.owners));
  const SliceMap& map = e_.arrays_.In(buffer);
  if (moved.shard >= 0) Written(moved.shard, e_.gradient_buffers_[moved.shard].flat().numel());
  const auto add = [&](int64_t begin, int64_t end, const at::Tensor& part) {
    for (const LocalPiece& piece : map.PiecesOf(op.unit, begin, end, moved.within)) {
      part.narrow(0, piece.in_range, piece.elements).add_(array.narrow(0, piece.in_array, piece.elements));
    }
  };
  const bool stays = buffer.home_of >= 0 || SumStays(op.unit);
  if (!stays) ForEachPart(op.unit, &RangeState::gradient, e_.gradient_buffers_, moved.shard, add);
  GradientUse& use = gradient_uses_[op.grad];
  use.reduced += moved.within.size();
  if (use.reduced < map.NumElements(op.unit)) return absl::OkStatus();
  use = GradientUse();
  if (moved.shard < 0 && (SumStays(op.unit) || in_turn_[static_cast<size_t>(op.unit)])) TakeNorms(op);
  return absl::OkStatus();
}

// The norms of ranges are those that their shards would have: of the same elements in the same order.
void Executor::Pass::TakeNorms(const ReduceScatter& op) {
  const at::Tensor& array = e_.gradient_buffers_[op.grad].flat();
  const std::vector<RangeState>& all = e_.state_.ranges();
  for (const RangeState& own : e_.state_.Of(op.unit)) {
    at::Tensor sum = own.gradient;
    if (SumStays(op.unit)) {
      std::vector<at::Tensor> parts;
      for (const LocalPiece& piece : e_.arrays_.In(program_.gradient_buffers[op.grad]).PiecesOf(op.unit, own.begin, own.end)) {
        parts.push_back(array.narrow(0, piece.in_array, piece.elements));
      }
      sum = parts.size() == 1 ? parts[0] : at::cat(parts);
    }
    norms_[static_cast<size_t>(&own - all.data())] = SquaredNorm(sum);
  }
}

// In place: what a pass keeps of the tensor is the sum, too. What is carried past the products is added to their sum, by every
// rank: added to one rank's term it would be rounded once more, and what is carried is larger than what is summed.
absl::Status Executor::Pass::Do(const AllReduceActivation& op) {
  at::Tensor& made = activations_[op.microbatch];
  TORCH_CHECK(made.defined() && made.is_contiguous(), "there is nothing of unit ", op.unit, " to be summed");
  if (op.of == Exchanged::kRows) return GatherRows(op.group, made);
  MOTLEY_RETURN_IF_ERROR(e_.communicator_.AllReduce(op.group, made.mutable_data_ptr(), e_.precision_.compute, made.numel()));
  if (at::Tensor past = std::exchange(carried_[op.microbatch], at::Tensor()); past.defined()) {
    made.add_(past.view(made.sizes()));
    e_.backend_.UsedOn(past, Lane::kCollective);
  }
  const bool forward = op.of == Exchanged::kActivation;
  if (op.segment == (forward ? UnitSegment::kAttention : UnitSegment::kMlp)) return absl::OkStatus();
  if (Held(forward ? op.unit + 1 : op.unit - 1)) return absl::OkStatus();
  // It leaves the stage: the leader alone hands it over.
  const at::Tensor whole = std::exchange(made, at::Tensor());
  e_.backend_.UsedOn(whole, Lane::kCollective);
  if (!assignment().slice.leads()) return absl::OkStatus();
  if (forward) {
    activations_out_.Put(op.unit + 1, op.microbatch, whole);
  } else {
    gradients_out_.Put(op.unit, op.microbatch, whole);
  }
  return absl::OkStatus();
}

// One exchange: every member gets everybody's and combines them by itself.
absl::Status Executor::Pass::GatherRows(int group, at::Tensor& rows) {
  const CountingAs counting(MemoryPurpose::kSaved);
  const std::vector<int32_t>& members = program_.groups[group];
  const auto count = static_cast<int64_t>(members.size());
  const int64_t mine = std::find(members.begin(), members.end(), program_.rank) - members.begin();
  const at::Tensor all = at::empty({count, rows.size(0), rows.size(1)}, rows.options());
  all.select(0, mine).copy_(rows);
  e_.backend_.UsedOn(rows, Lane::kCollective);
  rows = all;
  return e_.communicator_.AllGather(group, all.mutable_data_ptr(), e_.precision_.master,
                                    EvenOwners(all.numel(), static_cast<int>(count)));
}

absl::Status Executor::Pass::Do(const BroadcastActivation& op) {
  const CountingAs counting(MemoryPurpose::kBoundaries);
  Border& border = op.of == Exchanged::kActivation ? activations_in_ : gradients_in_;
  const bool root = op.root == program_.rank;
  const at::Tensor whole = root ? border.TakeShared(op.unit, op.microbatch)
                                : border.Whole(op.unit, op.microbatch, assignment().config.training.seq_len,
                                               assignment().model.hidden_size, Activations());
  TORCH_CHECK(whole.defined(), "there is nothing of unit ", op.unit, " to be broadcast");
  if (root) e_.backend_.UsedOn(whole, Lane::kCollective);
  return e_.communicator_.AllGather(op.group, whole.mutable_data_ptr(), e_.precision_.compute,
                                    OnlyOwner(program_.groups[op.group], op.root, whole.numel()));
}

absl::Status Executor::Pass::Do(const ReduceScalars&) {
  StepScalars mine;
  mine.loss_sum = loss_sum_.item<double>();
  mine.tokens = tokens_;
  if (const int64_t first = finite_.First(); first < 2 * program_.num_units) mine.not_finite = first;
  mine.stop = input_.stop;
  mine.save = input_.save;
  mine.checkpoint = input_.checkpoint;
  mine.trained_tokens = static_cast<double>(input_.trained_tokens);
  mine.touched = input_.touched;
  if (training_) AddNorms(mine);
  MOTLEY_ASSIGN_OR_RETURN(const auto by_rank, e_.communicator_.GatherScalars(mine.ToVector()));
  outcome_.scalars = SummedScalars(by_rank);
  return CheckFinite();
}

void Executor::Pass::AddNorms(StepScalars& mine) const {
  const std::vector<RangeState>& owned = e_.state_.ranges();
  if (owned.empty()) return;
  std::vector<at::Tensor> norms;
  for (size_t i = 0; i < owned.size(); ++i) norms.push_back(norms_[i].defined() ? norms_[i] : SquaredNorm(owned[i].gradient));
  const at::Tensor on_host = at::stack(norms).cpu();
  for (size_t i = 0; i < owned.size(); ++i) {
    const double squared = on_host.const_data_ptr<double>()[i];
    if (!std::isfinite(squared)) {
      mine.not_finite = std::min(mine.not_finite, GradientPosition(owned[i].block, program_.num_units));
    }
    mine.squared_norm += squared / (input_.loss_scale * input_.loss_scale);
  }
}

absl::Status Executor::Pass::CheckFinite() {
  const SummedScalars& scalars = outcome_.scalars;
  if (!training_) return absl::OkStatus();
  outcome_.is_void = !scalars.counts();
  if (outcome_.is_void || scalars.finite()) return absl::OkStatus();
  const bool known = scalars.first_not_finite_rank >= 0;
  const std::string where =
      absl::StrCat(known ? DescribePosition(scalars.sum.not_finite, program_.num_units) : std::string("the sum over ranks"),
                   known ? absl::StrCat(" on ", assignment().devices[scalars.first_not_finite_rank].value()) : std::string());
  const bool in_part = std::find(in_turn_.begin(), in_turn_.end(), true) != in_turn_.end();
  if (input_.may_skip && !in_part) {
    outcome_.overflow = where;
    return absl::OkStatus();
  }
  const bool half = e_.precision_.compute == DType::kFloat16;
  return absl::AbortedError(absl::StrCat(
      "step ", input_.step + 1, ": loss or gradient is NaN or infinite, first in ", where, "; the step was ",
      in_part ? "applied in part, since units are stepped in turn, and is not saved. " : "not applied. ",
      half ? "Float16 overflows even with a loss scale of 1: set training.mixed_precision_param to bfloat16 or float32, or lower"
           : "Lower",
      " optimizer.lr, raise lr_scheduler.warmup_steps, or set training.max_norm"));
}

}  // namespace motley::engine
