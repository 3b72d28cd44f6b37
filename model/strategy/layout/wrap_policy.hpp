#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/network/network.hpp"

namespace lockstep {

/// Layers `first` to `last`.
struct WrappedModule {
  size_t first = 0;
  size_t last = 0;
  bool contains(size_t layer) const { return first <= layer && layer <= last; }
  bool contains(const WrappedModule& inner) const {
    return first <= inner.first && inner.last <= last;
  }
  bool operator==(const WrappedModule&) const = default;
};

/// Which modules become units of their own, whose parameters are gathered and freed together.
struct WrapPolicy {
  /// These, given in the order in which wrapped_modules() returns them.
  std::vector<WrappedModule> modules{};
  /// Every module of these classes ("Linear", "Residual", a preset's "GPT2Block").
  std::vector<std::string> classes{};
  /// What repeats: the blocks of a preset, each turn of a `repeat`, each Residual outside of both.
  bool repeated_blocks = false;
  /// Modules of at least so many elements that are in no unit yet: size_based_auto_wrap_policy
  /// (torch/distributed/fsdp/wrap.py). 0: not by size.
  int64_t min_num_params = 0;
  /// Every batch norm is a module of its own, also where the policy names none (FSDP1 with mixed
  /// precision: _module_classes_to_ignore).
  bool batch_norms_apart = false;
  /// Parameters of these classes or layers are in no unit.
  std::vector<std::string> ignored{};
};

/// By layer, whether its parameters are in no unit.
std::vector<bool> ignored_layers(const Network& network, const WrapPolicy& policy);

/// Whether the layer is such a batch norm.
bool is_apart(const Network& network, const WrapPolicy& policy, size_t layer);

/// The modules that the policy wraps, in the order of their first layers, an outer one before those
/// in it. The whole network is not among them: it is always a unit.
std::vector<WrappedModule> wrapped_modules(const Network& network, const WrapPolicy& policy);

/// Two layers that share a weight and are in different modules of the policy, the whole network
/// among them. The weight is a parameter of the module that is wrapped first, the inner or earlier.
struct TiedOverModules {
  size_t owner = 0;  ///< the layer in that module
  size_t other = 0;
};
std::vector<TiedOverModules> tied_over_modules(const Network& network, const WrapPolicy& policy);

/// The classes that a policy can name in this network.
std::vector<std::string> module_classes(const Network& network);

}  // namespace lockstep
