// The smallest job that the coordinator takes.
#pragma once

#include <string>

#include "common/job/job.h"

namespace motley::coordinator {

inline JobConfig TinyJob(int64_t steps, const std::string& checkpoint_folder) {
  JobConfig config;
  config.model.config_json =
      R"({"model_type": "gpt2", "vocab_size": 256, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32,
          "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})";
  config.training.steps = steps;
  config.training.seq_len = 16;
  config.training.global_batch_size = 8;
  config.data.path = "/data";
  config.checkpoint.folder = checkpoint_folder;
  return config;
}

}  // namespace motley::coordinator
