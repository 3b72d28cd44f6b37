#pragma once

#include <cstdint>

#include "model/core/units.hpp"

namespace lockstep {

enum class BaguaAlgorithm : uint8_t {
  gradient_allreduce,
  bytegrad,
  decentralized,
  low_precision_decentralized,
  qadam,
  async,
};

/// Arguments of BaguaStrategy, those of its algorithm among them.
struct BaguaOptions {
  BaguaAlgorithm algorithm = BaguaAlgorithm::gradient_allreduce;
  bool flatten = true;        ///< tensors are views of their bucket
  bool hierarchical = false;  ///< reduce within nodes, the algorithm among their leaders, broadcast
  bool average = true;        ///< false: gradients are summed
  bool shift_one = false;     ///< weights are averaged with one peer, a different one each time
  int64_t communication_interval = 1;
  int64_t sync_interval_ms = 500;
  int64_t warmup_steps = 0;  ///< of async; QAdam's belong to its optimizer
  Bytes bucket_size{10 * 1024 * 1024};
};

}  // namespace lockstep
