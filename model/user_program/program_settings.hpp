#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/core/device_type.hpp"
#include "model/core/ids.hpp"
#include "model/core/ranks_of_nodes.hpp"
#include "model/core/units.hpp"
#include "model/core/value_budget.hpp"
#include "model/core/version.hpp"

namespace lockstep {

struct ProgramSpec;

/// Horovod's engine in a program that calls it itself, with what its variables give.
struct NamedCallSettings {
  Bytes fusion_threshold{int64_t{128} << 20};  ///< HOROVOD_FUSION_THRESHOLD
  Time cycle_time{int64_t{1'000'000'000}};     ///< HOROVOD_CYCLE_TIME: 1 ms
  int64_t cache_capacity = 1024;               ///< HOROVOD_CACHE_CAPACITY, names
};

/// Data that the statements of all ranks share. Outlives the run.
struct ProgramSettings {
  bool gloo = false;           ///< collectives hold the host until they are done
  bool meets_by_name = false;  ///< collectives are Horovod's, in place of torch.distributed's
  NamedCallSettings named_calls{};
  Version torch{2, 11, 0};
  Version lightning{2, 6, 0};
  bool avoids_record_streams = false;  ///< by TORCH_NCCL_AVOID_RECORD_STREAMS
  uint64_t seed = 0;
  bool on_gpus = false;  ///< tensors of a rank live on its GPU, and not in host memory
  DeviceType device = DeviceType::cuda;   ///< what that GPU is
  std::vector<int64_t> gpus;              ///< the number of each local rank's GPU; empty: 0, 1, ..
  int64_t visible_gpus = 0;               ///< of a node; 0: not known
  RanksOfNodes ranks_of_nodes{};          ///< where nodes differ; empty: all have as many
  std::map<std::string, uint8_t> queues;  ///< of streams that the scenario names
  int64_t statement_limit = 10'000'000;   ///< of one rank
  bool gathers_rows = false;              ///< the module's all_gather is Horovod's (StrategyTraits)
  /// One device in place of so many ranks: it trains on the batches of all of them, joined, and
  /// all_gather keeps its shape.
  int32_t stands_for = 1;
  bool joins_evaluation = false;  ///< it evaluates on the batches of all of them, too
  /// What `call` runs; outlives the run. Null: the program has no functions.
  const ProgramSpec* functions = nullptr;
  std::function<bool()> stop_asked{};           ///< whether to give up; null: never
  std::shared_ptr<ValueBudget> value_budget{};  ///< learns what is executed; may be null
};

}  // namespace lockstep
