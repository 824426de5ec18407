#include "worker/engine/model/unit_bench.h"

#include <utility>

#include "worker/engine/base/scalar_type.h"
#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

// Values of the size that training has, so that no operator meets denormal or infinite numbers.
constexpr double kWeightBound = 0.05;
constexpr double kActivationBound = 1.0;

// Of two documents, where there is room for two.
DocumentLengths TwoDocuments(int64_t seq_len) {
  const auto first = static_cast<int32_t>((3 * seq_len + 3) / 4), rest = static_cast<int32_t>(seq_len) - first;
  return rest > 0 ? DocumentLengths{first, rest} : DocumentLengths{first};
}

int64_t Bytes(const at::Tensor& t) { return t.defined() ? static_cast<int64_t>(t.nbytes()) : 0; }

}  // namespace

UnitBench::UnitBench(UnitModel& model, const ModelShape& shape, int64_t seq_len, Precision precision, c10::Device device,
                     UnitKind kind)
    : model_(model),
      shape_(shape),
      seq_len_(seq_len),
      kind_(kind),
      options_(at::TensorOptions().dtype(ScalarTypeOf(precision.compute)).device(device)),
      finite_(1, 1, options_.dtype(ScalarTypeOf(precision.master))) {
  const at::TensorOptions master = options_.dtype(ScalarTypeOf(precision.master));
  const std::vector<UnitSpec> layout = ParameterLayout(shape);
  const int64_t elements = layout[static_cast<size_t>(FirstUnitOf(kind, shape))].num_elements;
  params_ = Uniform({elements}, kWeightBound);
  grads_ = at::zeros({elements}, master);
  if (kind == UnitKind::kHead && shape.tie_embeddings) {
    embedding_params_ = Uniform({layout.front().num_elements}, kWeightBound);
    embedding_grads_ = at::zeros({layout.front().num_elements}, master);
  }
}

void UnitBench::Prepare(int64_t samples, SamplesKind kind, LayerKind layer) {
  saved_.kind = layer;
  const auto labels = [&] { return at::randint(model_.vocab_size(), {samples, seq_len_}, options_.dtype(at::kLong)); };
  const auto activation = [&] { return Uniform({samples, seq_len_, shape_.hidden_size}, kActivationBound); };
  if (kind_ != UnitKind::kLayer) targets_ = labels();
  if (kind_ == UnitKind::kEmbedding) tokens_ = labels();
  if (kind_ != UnitKind::kEmbedding) input_ = activation();
  if (kind_ != UnitKind::kHead) grad_output_ = activation();
  if (kind == SamplesKind::kWhole) return;
  if (kind_ == UnitKind::kHead) trained_ = at::arange(0, samples * seq_len_, 2, options_.dtype(at::kLong));
  borders_ = MakeBorders(std::vector<DocumentLengths>(static_cast<size_t>(samples), TwoDocuments(seq_len_)), options_.device());
  if (kind_ == UnitKind::kLayer) documents_ = model_.DocumentsOf(*borders_);
}

void UnitBench::Forward(UnitSegment segment) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  switch (kind_) {
    case UnitKind::kEmbedding:
      output_ = model_.EmbeddingForward(params_, tokens_, borders());
      NoteFinite(output_);
      break;
    case UnitKind::kLayer: {
      const at::Tensor& input = segment == UnitSegment::kMlp ? output_ : input_;
      FiniteMark mark = finite_.MarkOf(0, 0);
      output_ = model_.LayerForward(segment, params_, input, saved_, model_.KeptFor(OpSet::None()), documents(), &mark);
      if (!mark.taken()) NoteFinite(output_);
      break;
    }
    case UnitKind::kHead:
      ForwardHead(segment);
      break;
  }
}

void UnitBench::ForwardHead(UnitSegment segment) {
  switch (segment) {
    case UnitSegment::kLogits:
      head_rows_ = model_.HeadLogits(params_, embedding_params_, input_, targets_, Keep::kAll, saved_, trained_);
      break;
    case UnitSegment::kLoss:
      NoteFinite(model_.HeadLoss(std::exchange(head_rows_, at::Tensor()), Keep::kAll, saved_, trained_));
      break;
    default:
      if (model_.whole()) {
        UnitModel::HeadKeep(input_, saved_);
      } else {
        ForwardHead(UnitSegment::kLogits);
        ForwardHead(UnitSegment::kLoss);
      }
  }
}

void UnitBench::Evaluate() {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  NoteFinite(model_.HeadForward(params_, embedding_params_, input_, targets_, trained_));
}

void UnitBench::BackwardOfHead(const UnitArray& sum, const UnitArray& tied_sum) {
  const HeadGradient made =
      model_.HeadBackward(params_, embedding_params_, saved_, targets_, 1.0, sum, tied_sum, trained_, rows_at_once_);
  if (made.loss.defined()) NoteFinite(made.loss);
  grad_input_ = made.input;
  NoteFinite(grad_input_);
}

void UnitBench::Backward(UnitSegment segment) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  switch (kind_) {
    case UnitKind::kEmbedding:
      model_.EmbeddingBackward(tokens_, grad_output_, grads_, borders());
      break;
    case UnitKind::kLayer: {
      const at::Tensor& grad_output = segment == UnitSegment::kAttention ? grad_input_ : grad_output_;
      FiniteMark mark = finite_.MarkOf(0, 0);
      grad_input_ = model_.LayerBackward(params_, saved_, grad_output, grads_, segment, documents(), &mark);
      if (!mark.taken()) NoteFinite(grad_input_);
      break;
    }
    case UnitKind::kHead:
      BackwardOfHead(grads_, embedding_grads_);
      break;
  }
}

void UnitBench::BackwardInput() {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  switch (kind_) {
    case UnitKind::kEmbedding:
      saved_.gradients = {std::exchange(grad_output_, at::Tensor())};
      break;
    case UnitKind::kLayer: {
      FiniteMark mark = finite_.MarkOf(0, 0);
      grad_input_ = model_.LayerBackwardInput(params_, saved_, grad_output_, UnitSegment::kWhole, documents(), &mark);
      if (!mark.taken()) NoteFinite(grad_input_);
      break;
    }
    case UnitKind::kHead:
      head_sum_ = at::zeros_like(grads_.flat());
      if (embedding_grads_.defined()) tied_sum_ = at::zeros_like(embedding_grads_.flat());
      BackwardOfHead(head_sum_, tied_sum_);
      break;
  }
}

void UnitBench::BackwardWeight() {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  switch (kind_) {
    case UnitKind::kEmbedding:
      model_.EmbeddingBackward(tokens_, saved_.gradients.front(), grads_, borders());
      break;
    case UnitKind::kLayer:
      model_.LayerBackwardWeight(saved_, grads_);
      break;
    case UnitKind::kHead:
      grads_.flat().add_(head_sum_.flat());
      if (tied_sum_.defined()) embedding_grads_.flat().add_(tied_sum_.flat());
      head_sum_ = tied_sum_ = UnitArray();
      break;
  }
  saved_ = {};
}

void UnitBench::Clear() {
  saved_ = {};
  borders_.reset();
  documents_.reset();
  tokens_ = targets_ = trained_ = input_ = output_ = grad_output_ = grad_input_ = at::Tensor();
  head_rows_ = at::Tensor();
  head_sum_ = tied_sum_ = UnitArray();
}

void UnitBench::NoteFinite(const at::Tensor& made) { finite_.Note(made, 0, 0); }

int64_t UnitBench::input_bytes() const {
  return kind_ == UnitKind::kEmbedding ? Bytes(tokens_) + Bytes(targets_) : Bytes(input_);
}
int64_t UnitBench::output_bytes() const { return Bytes(output_); }
int64_t UnitBench::input_grad_bytes() const { return Bytes(grad_input_); }

at::Tensor UnitBench::Uniform(at::IntArrayRef shape, double bound) const {
  return at::empty(shape, options_).uniform_(-bound, bound);
}

}  // namespace motley::engine
