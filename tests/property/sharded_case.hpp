#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "model/network/network.hpp"
#include "model/strategy/registry.hpp"
#include "tests/conformance/world.hpp"

namespace lockstep::test {

/// A training under a strategy that shards, as a value.
struct ShardedCase {
  std::string strategy;  ///< by its name in the registry; "ddp" with `divides_optimizer`
  std::vector<std::pair<std::string, StrategyArguments::Value>> arguments;
  bool divides_optimizer = false;   ///< ZeroRedundancyOptimizer
  bool in_buckets = false;          ///< its parameters_as_bucket_view
  bool accumulates_locally = true;  ///< micro-batches but the last run as under no_sync
  bool keeps_gradients = false;     ///< zero_grad(set_to_none=False)
  int32_t ranks = 2;                ///< that train
  int32_t servers = 0;              ///< ranks beside them
  int32_t world_size() const { return ranks + servers; }
  int32_t hidden = 4;
  bool freezes_first = false;
  bool adam = false;
  bool qadam = false;    ///< Bagua's optimizer
  bool on_gpus = false;  ///< for what raises on the CPU
  int32_t devices = 1;   ///< of a rank, which divide its batch
  int64_t steps = 2;
  int64_t accumulate = 1;
  bool saves = false;  ///< a checkpoint at the end
};

rc::Gen<ShardedCase> sharded_cases();
/// Trainings under Bagua, by any of its algorithms.
rc::Gen<ShardedCase> bagua_cases();
/// Trainings under Horovod, by any of its operations, in process sets and groups.
rc::Gen<ShardedCase> horovod_cases();
/// Trainings whose ranks average their models now and then.
rc::Gen<ShardedCase> averaging_cases();
/// Trainings with parameter servers, in any of their modes.
rc::Gen<ShardedCase> server_cases();
Network network_of(const ShardedCase& training);

/// The elements of parameters that a rank has at the end.
struct HeldPart {
  size_t parameter = 0;
  int64_t first_element = 0;
};
/// What a rank has in the order of what it has seen, and the bytes that it has written.
struct EndOfRank {
  std::vector<HeldPart> parts;
  Bytes written{};
};
/// Trains as the case says; all but `end` outlive the run.
Program train_sharded(Rank& rank, const ShardedCase* training, const Network* network, Seen& seen,
                      EndOfRank* end);

std::ostream& operator<<(std::ostream& out, const ShardedCase& training);

}  // namespace lockstep::test
