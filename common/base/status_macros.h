// Return-early macros for absl::Status and absl::StatusOr (Debian's Abseil has none yet).
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define MOTLEY_RETURN_IF_ERROR(expr)                 \
  do {                                               \
    absl::Status motley_status_ = (expr);            \
    if (!motley_status_.ok()) return motley_status_; \
  } while (false)

#define MOTLEY_CONCAT_INNER_(a, b) a##b
#define MOTLEY_CONCAT_(a, b) MOTLEY_CONCAT_INNER_(a, b)
#define MOTLEY_ASSIGN_OR_RETURN(lhs, expr) MOTLEY_ASSIGN_OR_RETURN_IMPL_(MOTLEY_CONCAT_(motley_or_, __LINE__), lhs, expr)
#define MOTLEY_ASSIGN_OR_RETURN_IMPL_(var, lhs, expr) \
  auto var = (expr);                                  \
  if (!var.ok()) return std::move(var).status();      \
  lhs = std::move(var).value()
