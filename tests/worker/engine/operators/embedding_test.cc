#include "worker/engine/operators/embedding.h"

#include "tests/worker/engine/model/autograd_oracle.h"

namespace motley::engine {
namespace {

using EmbeddingTest = OperatorTest;

// Token 3 stands twice in a sample and in both samples: its gradients add up.
at::Tensor Tokens() { return at::tensor({3, 0, 3, 9, 5, 3}, at::kLong).view({2, 3}); }

TEST_P(EmbeddingTest, WithPositionsEqualsAutograd) {
  const at::Tensor table = Leaf(Make({10, 4})), positions = Leaf(Make({5, 4})), dy = Make({2, 3, 4});
  const at::Tensor want = at::embedding(table, Tokens()) + positions.narrow(0, 0, 3);
  const auto grads = AutogradOf(want, {table, positions}, dy);
  c10::NoGradGuard no_grad;
  ExpectNear(EmbedForward(Tokens(), table.detach(), positions.detach()), want, tolerance(), "output");
  at::Tensor grad_table = at::ones_like(table), grad_positions = at::ones_like(positions);
  EmbedBackward(Tokens(), dy, grad_table, grad_positions);
  ExpectNear(grad_table, grads[0] + 1, tolerance(), "token table");
  ExpectNear(grad_positions, grads[1] + 1, tolerance(), "position table");
}

TEST_P(EmbeddingTest, WithoutPositionsEqualsAutograd) {
  const at::Tensor table = Leaf(Make({10, 4})), dy = Make({2, 3, 4});
  const at::Tensor want = at::embedding(table, Tokens());
  const auto grads = AutogradOf(want, {table}, dy);
  c10::NoGradGuard no_grad;
  ExpectNear(EmbedForward(Tokens(), table.detach(), at::Tensor()), want, tolerance(), "output");
  at::Tensor grad_table = at::zeros_like(table), none;
  EmbedBackward(Tokens(), dy, grad_table, none);
  ExpectNear(grad_table, grads[0], tolerance(), "token table");
}

// Of a document that begins within a sample they count from 0 again.
TEST_P(EmbeddingTest, PositionsOfDocumentsEqualAutograd) {
  const Borders borders = MakeBorders({{1, 2}, {3}}, at::kCPU);
  const at::Tensor table = Leaf(Make({10, 4})), positions = Leaf(Make({5, 4})), dy = Make({2, 3, 4});
  const at::Tensor places = at::tensor({0, 0, 1, 0, 1, 2}, at::kLong).view({2, 3});
  const at::Tensor want = at::embedding(table, Tokens()) + at::embedding(positions, places);
  const auto grads = AutogradOf(want, {table, positions}, dy);
  c10::NoGradGuard no_grad;
  ExpectNear(EmbedForward(Tokens(), table.detach(), positions.detach(), &borders), want, tolerance(), "output");
  ExpectNear(EmbedPartForward(Tokens(), table.detach(), positions.detach(), 0, &borders), want, tolerance(), "output of a part");
  for (const bool part : {false, true}) {
    at::Tensor grad_table = at::ones_like(table), grad_positions = at::ones_like(positions);
    if (part) {
      EmbedPartBackward(Tokens(), dy, grad_table, grad_positions, 0, &borders);
    } else {
      EmbedBackward(Tokens(), dy, grad_table, grad_positions, &borders);
    }
    ExpectNear(grad_table, grads[0] + 1, tolerance(), "token table");
    ExpectNear(grad_positions, grads[1] + 1, tolerance(), "position table");
  }
}

MOTLEY_BOTH_DTYPES(EmbeddingTest);

}  // namespace
}  // namespace motley::engine
