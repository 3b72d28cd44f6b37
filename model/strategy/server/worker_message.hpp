#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

/// What a worker says before the data that go with it: two numbers, of which the second is the
/// learning rate of its schedule. Of a call that is remote they are its name and arguments.
struct WorkerMessage {
  enum class Kind : uint8_t { pull, push, end };
  Kind kind = Kind::pull;
  double learning_rate = 0;

  static constexpr DType dtype = DType::fp64;
  static constexpr int64_t elements = 2;
  Values values() const { return Values::of(dtype, {static_cast<double>(kind), learning_rate}); }
  static WorkerMessage of(const Values& values) {
    return {static_cast<Kind>(values.integer(0)), values.number(1)};
  }

  // Tags of the messages between two ranks, by what they hold.
  static constexpr int32_t said = 1;
  static constexpr int32_t gradient = 2;
  static constexpr int32_t weights = 3;
};

}  // namespace lockstep
