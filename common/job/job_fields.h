// The one table of a job's fields: path, type, range. The job file, the wire form, Validate and `motley config show` walk it,
// so a new field is one struct member, one proto field and one line here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/job/job.h"

namespace motley {

using FieldValue = std::variant<std::string*, int64_t*, double*, bool*>;

struct JobField {
  std::string_view section;  // empty: at the top of the file
  std::string_view key;
  FieldValue value;  // points into the config the table was made for
  // Numbers: the closed range [min, max], or (min, ...] and [..., max) where said to be exclusive.
  double min = 0, max = 0;
  bool min_exclusive = false, max_exclusive = false;
  std::vector<std::string_view> choices;  // texts: the values allowed; empty = any
  size_t max_bytes = 0;                   // texts: the longest allowed
  std::string_view hint;                  // texts: where to look, behind a value that is not allowed
  bool names_dtype = false;               // texts: in any spelling of common/base/dtype.h

  std::string Path() const;       // "training.steps"
  std::string TypeName() const;   // "an integer", "a number", "a string"
  std::string ValueText() const;  // as TOML would write it
  // Of a field that holds a text. A type's name becomes the long one.
  void SetText(std::string text) const;
  // "" or what is wrong: "training.steps must be at least 1, got 0".
  std::string Complaint() const;
};

// In the order of the documentation. `config` must outlive the result.
std::vector<JobField> JobFields(JobConfig& config);

}  // namespace motley
