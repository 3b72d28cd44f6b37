#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/units.hpp"

namespace lockstep::cli {

/// One training under ddp and under ddp_sharded, as `lockstep run` predicts both.
struct SweptPair {
  std::string name;  ///< "gpt2 one node"
  int64_t parameters = 0;
  int64_t devices = 0;
  std::optional<Time> step_time;  ///< of ddp; nothing where a run gave no prediction
  std::optional<Time> sharded_step_time;
  Bytes memory{};  ///< of ddp, on the fullest GPU
  Bytes sharded_memory{};
};

/// Predicts the cases `ddp_NAME` and `sharded_NAME` of a scenario, pair by pair in their order.
std::vector<SweptPair> sweep_of(std::string_view path, std::string_view text);

/// A table of them, under a heading.
std::string text_of(const std::vector<SweptPair>& pairs);

}  // namespace lockstep::cli
