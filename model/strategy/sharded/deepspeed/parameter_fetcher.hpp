#pragma once

#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "model/strategy/layout/module_list.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_options.hpp"
#include "model/strategy/sharded/deepspeed/parameter_partitions.hpp"

namespace lockstep {

/// Which parameters ZeRO stage 3 gathers and frees, and when
/// (deepspeed/runtime/zero/partitioned_param_coordinator.py). A first micro-batch records the order
/// in which modules run; from then on parameters of later modules are gathered ahead, until the
/// order changes.
class ParameterFetcher {
 public:
  ParameterFetcher(const DeepSpeedOptions& options, ParameterPartitions& partitions,
                   std::vector<std::vector<size_t>> parameters_of_modules);

  /// A forward begins. A recorded order is compared among the ranks first.
  Program begin_micro_batch(Rank& rank);
  /// A module is about to compute: its parameters are gathered, then those of the next ones.
  void fetch(Rank& rank, size_t module);
  /// A module has computed.
  void release(Rank& rank, size_t module);
  /// Before an optimizer step: every whole parameter is freed.
  void release_all(Rank& rank);
  /// After it: small parameters are gathered one by one, and stay.
  void gather_persistent(Rank& rank);
  bool is_persistent(size_t parameter) const;

 private:
  enum class Trace : uint8_t { invalid, recording, complete };
  struct Use {
    size_t parameter = 0;
    int64_t last_step = 0;  ///< the place of the module that used it, in the order
  };
  static constexpr int64_t never = std::numeric_limits<int64_t>::min();

  void mark_persistent();
  void check_order(size_t module);
  void forget_trace();
  void gather(Rank& rank, const std::vector<size_t>& parameters);
  void prefetch(Rank& rank, const std::vector<size_t>& parameters);
  void read_ahead(Rank& rank);
  const std::vector<size_t>& may_be_freed(size_t module);
  std::vector<size_t> decide_what_may_be_freed(size_t module) const;

  DeepSpeedOptions options_;
  std::vector<bool> persistent_;  ///< by parameter
  ParameterPartitions* partitions_;
  std::vector<std::vector<size_t>> parameters_of_;  ///< by module, ascending
  Trace trace_ = Trace::invalid;
  std::vector<size_t> module_order_;
  std::vector<Use> parameter_order_;
  std::deque<Use> queue_;             ///< uses ahead that nothing has been gathered for
  std::vector<int64_t> fetched_for_;  ///< by parameter: the last step, or `never`
  std::map<size_t, std::deque<int64_t>> recorded_steps_;  ///< by module
  /// What may be freed is decided once for a module at a place in the order, and never again
  /// (functools.lru_cache).
  std::map<std::pair<size_t, int64_t>, std::vector<size_t>> decided_;
  int64_t step_ = 0;
  int64_t available_ = 0;  ///< elements gathered or under way
  std::vector<std::vector<size_t>>
      active_in_;  ///< by parameter: modules that use it now, each once
};

}  // namespace lockstep
