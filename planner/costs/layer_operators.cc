#include "planner/costs/layer_operators.h"

#include <algorithm>

namespace motley::planner {
namespace {

class Table {
 public:
  explicit Table(const Workload& workload)
      : workload_(workload),
        shape_(workload.model),
        traits_(TraitsOf(workload.model.family)),
        size_(static_cast<double>(SizeOfBytes(workload.dtype))),
        tokens_(static_cast<double>(workload.seq_len)) {}

  OperatorWork Work(const OpCost& cost) const {
    const double h = Width(shape_.hidden_size), up = Width(shape_.intermediate_size);
    const double q = Width(shape_.num_heads * shape_.head_dim), kv = Width(shape_.num_kv_heads * shape_.head_dim);
    const double up_width = static_cast<double>(UpProductsOf(traits_.activation)) * up;
    OperatorWork work;
    work.op = cost.op;
    work.forward_flops = cost.forward_flops;
    work.backward_flops = cost.backward_flops;
    switch (cost.op) {
      case Op::kNorm1:
      case Op::kNorm2:
        Undivided(&work, 2 * h, h + Statistics(StatisticsOf(traits_.norm)));
        break;
      case Op::kFinalNorm:
        Undivided(&work, 2 * h, h);
        break;
      case Op::kResidual1:
      case Op::kResidual2:
        Undivided(&work, 3 * h, 0);
        break;
      case Op::kEmbed:
        Undivided(&work, static_cast<double>(1 + TablesOf(traits_.positions)) * h, static_cast<double>(cost.saved_bytes));
        break;
      case Op::kQkv:
        Product(&work, h, q + 2 * kv, q + 2 * kv);
        break;
      case Op::kRotary:
        work.activation_bytes = 2 * (q + kv);
        break;
      case Op::kAttention:
        Attention(&work, q, kv);
        break;
      case Op::kAttnOut:
        Product(&work, q, h, h);  // kept with the residual added: the second norm's input, whole on every rank
        work.output_divided = false;
        break;
      case Op::kUp:
        Product(&work, h, up_width, up_width);
        break;
      case Op::kActivation:
        work.activation_bytes = up_width + up;
        work.output_bytes = up;
        break;
      case Op::kDown:
        Product(&work, up, h, 0);  // its output is the next unit's input
        break;
      case Op::kLmHeadLoss:
        // The chunk's logits are written and read again by the loss; the normalised input is kept.
        work.matrix_flops = work.forward_flops;
        work.activation_bytes = h + 3 * Width(shape_.vocab_size);
        work.output_divided = false;
        work.weight_bytes = size_ * static_cast<double>(shape_.hidden_size) * static_cast<double>(shape_.vocab_size);
        break;
    }
    return work;
  }

 private:
  // Bytes of one sample of so many columns.
  double Width(int64_t columns) const { return tokens_ * static_cast<double>(columns) * size_; }
  // Of half tensors they are float32.
  double Statistics(int64_t columns) const {
    return tokens_ * static_cast<double>(columns) * std::max(size_, static_cast<double>(SizeOfBytes(DType::kFloat32)));
  }

  static void Undivided(OperatorWork* work, double traffic, double output) {
    work->divided = work->output_divided = false;
    work->activation_bytes = traffic;
    work->output_bytes = output;
  }
  void Product(OperatorWork* work, double in, double out, double output) const {
    work->matrix_flops = work->forward_flops;
    work->activation_bytes = in + out;
    work->weight_bytes = in * out / (tokens_ * tokens_ * size_);  // columns x columns x element
    work->output_bytes = output;
  }
  void Attention(OperatorWork* work, double q, double kv) const {
    if (!workload_.causal) work->forward_flops *= 2, work->backward_flops *= 2;
    work->matrix_flops = work->forward_flops;
    work->activation_bytes = 2 * q + 2 * kv;
    work->output_bytes = q + Statistics(shape_.num_heads);  // with the logarithm of the softmax's sum
  }

  const Workload& workload_;
  const ModelShape& shape_;
  const FamilyTraits& traits_;
  const double size_, tokens_;
};

}  // namespace

std::vector<OperatorWork> OperatorsOf(const Workload& workload, UnitKind unit) {
  const Table table(workload);
  std::vector<OperatorWork> operators;
  for (const OpCost& cost : UnitOperators(workload.model, unit, 1, workload.seq_len, workload.dtype)) {
    operators.push_back(table.Work(cost));
  }
  return operators;
}

OpSet RecomputedWith(OpSet ops) {
  if (ops.Has(Op::kQkv)) ops = ops.With(Op::kRotary);
  if (ops.Has(Op::kRotary)) ops = ops.With(Op::kQkv);
  if (ops.Has(Op::kAttnOut)) ops = ops.With(Op::kResidual1);
  if (ops.Has(Op::kResidual1)) ops = ops.With(Op::kAttnOut);
  return ops;
}

}  // namespace motley::planner
