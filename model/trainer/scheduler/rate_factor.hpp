#pragma once

#include <cstdint>

#include "model/expression/expression.hpp"

namespace lockstep {

/// What LambdaLR and MultiplicativeLR are given: a factor for each of the scheduler's own steps.
struct RateFactor {
  /// An expression of `epoch` and `pi`, or one of the functions of Hugging Face's
  /// transformers/optimization.py.
  enum class Form : uint8_t { expression, constant, linear, cosine, inverse_root };
  Form form = Form::expression;
  Expression expression{};
  int64_t warmup = 0;      ///< num_warmup_steps
  int64_t total = 0;       ///< num_training_steps
  double cycles = 0.5;     ///< num_cycles
  int64_t time_scale = 0;  ///< timescale

  /// Throws EvaluationError.
  double at(int64_t epoch) const;
};

}  // namespace lockstep
