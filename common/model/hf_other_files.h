// What people have under the name of a config.json that is none, with the way to one.
#pragma once

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace motley {

// Of a text that is no JSON: nothing, a web page, a pointer of Git LFS. Empty: none of these.
std::string WhatElseItIs(std::string_view text);
// Of an object whose model_type is not known: a model of several parts around a language model, another file of the same
// repository, another program's. Empty: none of these.
std::string WhatElseIsInside(const nlohmann::json& json);

}  // namespace motley
