#pragma once

#include <cstdint>
#include <string>

#include "io/table/throughput_table.hpp"

namespace lockstep::cli {

/// How a row lays its training out over its GPUs, as far as it says so.
struct RowLayout {
  int64_t gpus = 1;
  int64_t tensor = 1;    ///< ranks that compute a layer together
  int64_t pipeline = 1;  ///< ranks that layers are divided over
  int64_t chunks = 1;    ///< stages of a rank
  int64_t context = 1;   ///< ranks that positions of a sequence are divided over
  int64_t experts = 1;   ///< ranks that experts are divided over
  bool divides_model() const { return tensor > 1 || pipeline > 1 || context > 1; }
  /// Ranks with samples of their own.
  int64_t replicas() const { return gpus / (tensor * pipeline * context); }
};
RowLayout layout_of(const ThroughputRow& row, int64_t gpus);

/// The value of `trainer.strategy`, or why there is none.
struct RowStrategy {
  std::string yaml{};
  std::string name{};
  std::string why_not{};
  bool is_data_parallel = false;
  bool is_one_process = false;  ///< drives all GPUs, with a batch for all of them
  bool cuts_batch = false;      ///< into micro-batches itself: a batch is all of a step
  bool holds_half = false;      ///< parameters are stored in 16 bits
  std::string lightning{};      ///< the version that has it; empty: the newest
  std::string optimizer{};      ///< empty: that of the model
};
/// `batch`: samples of a micro-batch. `micro_batches`: of a step, on each replica.
RowStrategy strategy_of(const ThroughputRow& row, const RowLayout& layout, int64_t batch,
                        int64_t micro_batches);

}  // namespace lockstep::cli
