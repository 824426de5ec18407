// Profiles of a tiny Llama's units on any back end.
#pragma once

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "worker/engine/device/host_backend.h"
#include "worker/engine/profiler/compute_profiler.h"

namespace motley::engine {

class ComputeProfilerTest : public ::testing::Test {
 protected:
  ComputeProfilerTest() {
    assignment_.model = {.family = ModelFamily::kLlama,
                         .vocab_size = 256,
                         .hidden_size = 64,
                         .num_layers = 2,
                         .num_heads = 4,
                         .num_kv_heads = 2,
                         .head_dim = 16,
                         .intermediate_size = 160,
                         .max_positions = 64,
                         .tie_embeddings = true};
    assignment_.config.training.seq_len = 64;
    assignment_.config.training.global_batch_size = 4;
    assignment_.device.id = DeviceId("n1/gpu0");
    backend_.SetMemoryCap(0, "n1/gpu0");
  }
  void TearDown() override { backend_.SetMemoryCap(0, "n1/gpu0"); }

  ComputeProfile Profile() { return Profile(backend_); }
  ComputeProfile Profile(DeviceBackend& backend) { return Profile(backend, clock_); }
  ComputeProfile Profile(DeviceBackend& backend, const Clock& clock) {
    ComputePacer pacer(assignment_.device, clock);
    ProfileTime time(clock);
    ComputeProfile profile = ProfileUnits(assignment_, backend, pacer, time);
    lateness_seconds_ = pacer.lateness_seconds();
    return profile;
  }
  // A device slow enough that the host meets its declared times.
  void Emulate(double flops_per_second) {
    assignment_.device.kind = DeviceKind::kEmulated;
    assignment_.device.flops_per_second = flops_per_second;
    assignment_.device.launch = absl::Milliseconds(1);
  }

  RankAssignment assignment_;
  SystemClock clock_;
  HostBackend backend_;
  double lateness_seconds_ = 0;  // of the host, in the whole of the last profile
};

}  // namespace motley::engine
