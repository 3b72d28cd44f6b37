#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/strategy/arguments.hpp"
#include "model/strategy/exchange/averaging/model_averager.hpp"
#include "model/strategy/exchange/hooks/post_local_sgd.hpp"
#include "model/strategy/exchange/hooks/power_sgd.hpp"
#include "model/strategy/known_difference.hpp"

namespace lockstep {

/// What Lightning's arguments ddp_comm_hook, ddp_comm_state, ddp_comm_wrapper and
/// model_averaging_period ask for, and model_averager and outer_optimizer beside them.
struct HookOptions {
  enum class Kind : uint8_t { none, all_reduce, cast, power_sgd, post_local_sgd, noop };
  Kind kind = Kind::none;
  std::string name{};          ///< of the hook
  DType narrow = DType::fp16;  ///< of a hook that casts
  std::optional<DType> wrapper{};
  bool has_state = false;  ///< that the hook takes
  PowerSgdOptions power_sgd{};
  PostLocalSgdOptions post_local_sgd{};
  AveragingOptions averaging{};

  /// No hook averages gradients, and nothing else makes the replicas alike.
  bool leaves_replicas_alone() const { return kind == Kind::noop && !averaging.averages(); }
};

/// Throws ArgumentProblem where they cannot be meant, or torch or Lightning would refuse them.
HookOptions hook_options_from(const StrategyArguments& arguments);

/// Arguments that are given and change nothing, each with a sentence that says why. Lightning
/// registers hooks where the device is a GPU alone.
std::vector<std::pair<std::string, std::string>> hooks_without_effect(
    const StrategyArguments& arguments, bool on_gpu);

/// Null: no hook.
std::unique_ptr<BucketHook> make_bucket_hook(const HookOptions& options);

/// By what such gradients differ from those of one device.
std::vector<KnownDifference> differences_of(const HookOptions& options);

}  // namespace lockstep
