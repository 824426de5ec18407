// The windows of attention of a config.json: how large, and of which layers.
#pragma once

#include "common/model/hf_reader.h"
#include "common/model/hf_types.h"
#include "common/model/model.h"

namespace motley {

// `shape` comes with its layers, and with those of them that have no rotary positions. A window of a type of which transformers
// reads none is refused, but where it holds `seq_len` tokens (0: nobody said how many).
void ReadWindows(const HfReader& config, WindowKeys keys, int64_t seq_len, ModelShape* shape);

// What ReadWindows reads again; nothing of a shape without windows.
void WriteWindows(const ModelShape& shape, nlohmann::json* json);

}  // namespace motley
