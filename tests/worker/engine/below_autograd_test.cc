// What a unit calls of PyTorch it calls below autograd, which would do its bookkeeping for each call.
#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <set>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/fake_card.h"
#include "worker/engine/model/unit_bench.h"

namespace motley::engine {
namespace {

// What units call, and nothing else does, by whether the thread that called it left autograd out.
class CallsOfUnits {
 public:
  CallsOfUnits() {
    seen_ = {};
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&CallsOfUnits::Note).scopes({at::RecordScope::FUNCTION}));
  }
  ~CallsOfUnits() { at::removeCallback(handle_); }
  CallsOfUnits(const CallsOfUnits&) = delete;
  CallsOfUnits& operator=(const CallsOfUnits&) = delete;

  struct Seen {
    std::set<std::string> below, through;
  };
  Seen Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(seen_, {});
  }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    static const std::set<std::string> kOfUnits = {"aten::addmm",
                                                   "aten::addmm_",
                                                   "aten::mm",
                                                   "aten::native_layer_norm",
                                                   "aten::native_layer_norm_backward",
                                                   "aten::gelu",
                                                   "aten::gelu_backward",
                                                   "aten::_scaled_dot_product_flash_attention_for_cpu",
                                                   "aten::index_add_",
                                                   "aten::_scaled_dot_product_flash_attention_for_cpu_backward"};
    const std::string name = function.name();
    if (!kOfUnits.contains(name)) return nullptr;
    const bool below = c10::impl::tls_is_dispatch_keyset_excluded(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    absl::MutexLock lock(&mutex_);
    (below ? seen_.below : seen_.through).insert(name);
    return nullptr;
  }
  static inline absl::Mutex mutex_;
  static inline Seen seen_;
  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
};

class BelowAutogradTest : public EngineTest {
 protected:
  void ExpectBelow() {
    const CallsOfUnits::Seen seen = calls_.Take();
    EXPECT_EQ(seen.through, std::set<std::string>());
    for (const char* name : {"aten::addmm", "aten::native_layer_norm", "aten::gelu_backward"}) {
      EXPECT_TRUE(seen.below.contains(name)) << name;
    }
  }

  CallsOfUnits calls_;
};

TEST_F(BelowAutogradTest, StepsOfTheHost) {
  config_.training.steps = 1;
  TrainOk(Assign(Gpt2(), {{{3, 1}, 0.5, "full"}, {{4}, 0.5}}));
  ExpectBelow();
}

// Its rehearsal, too.
TEST_F(BelowAutogradTest, StepsOfACard) {
  config_.training.steps = 1;
  FakeCard card(1);
  EngineOptions options;
  options.backend = &card;
  const Outcome outcome = Train(Assign(Gpt2(), {{{8}, 1.0}}), {}, [&](int) { return options; });
  ASSERT_TRUE(outcome.ends[0].ok()) << outcome.ends[0].status();
  ExpectBelow();
}

TEST_F(BelowAutogradTest, WhatAProfileMeasures) {
  UnitModel model(Gpt2(), 16, DType::kFloat32);
  UnitBench layer(model, Gpt2(), 16, Precision(), c10::kCPU, UnitKind::kLayer);
  layer.Prepare(2);
  layer.Forward();
  layer.Backward();
  layer.Forward();
  layer.BackwardInput();
  layer.BackwardWeight();
  ExpectBelow();
}

}  // namespace
}  // namespace motley::engine
