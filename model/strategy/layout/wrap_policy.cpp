#include "model/strategy/layout/wrap_policy.hpp"

#include <algorithm>

namespace lockstep {

namespace {

WrappedModule layers_of(const NetworkBlock& block) { return {block.first, block.last}; }

bool contains(const WrappedModule& outer, const WrappedModule& inner) {
  return outer.contains(inner.first) && outer.contains(inner.last);
}

int64_t elements_of_layers(const Network& network, const WrapPolicy& policy,
                           const WrappedModule& module) {
  int64_t elements = 0;
  for (size_t layer = module.first; layer <= module.last; ++layer) {
    elements += is_apart(network, policy, layer) ? 0 : network.layers[layer].parameter_elements();
  }
  return elements;
}

// What repeats: an outer one counts, what it holds does not.
bool is_repeated_block(const NetworkBlock& module, const std::vector<WrappedModule>& chosen) {
  const bool is_block = module.repeats || module.class_name == "Residual";
  return is_block && std::none_of(chosen.begin(), chosen.end(), [&](const WrappedModule& outer) {
           return contains(outer, layers_of(module));
         });
}

// torch wraps children first; a module counts what its wrapped children leave over.
std::vector<WrappedModule> wrapped_by_size(const Network& network, const WrapPolicy& policy) {
  std::vector<WrappedModule> chosen;
  for (auto block = network.blocks.rbegin(); block != network.blocks.rend(); ++block) {
    const WrappedModule module = layers_of(*block);
    int64_t rest = elements_of_layers(network, policy, module);
    for (const WrappedModule& inner : chosen) {
      const bool is_outermost =
          std::none_of(chosen.begin(), chosen.end(), [&](const WrappedModule& other) {
            return &other != &inner && contains(other, inner) && contains(module, other);
          });
      if (contains(module, inner) && is_outermost) {
        rest -= elements_of_layers(network, policy, inner);
      }
    }
    if (rest >= policy.min_num_params) {
      chosen.push_back(module);
    }
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

void add_batch_norms(const Network& network, const WrapPolicy& policy,
                     std::vector<WrappedModule>& wrapped) {
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    const WrappedModule alone{layer, layer};
    if (is_apart(network, policy, layer) && std::ranges::count(wrapped, alone) == 0) {
      wrapped.push_back(alone);
    }
  }
  std::ranges::stable_sort(wrapped, [](const WrappedModule& a, const WrappedModule& b) {
    return a.first != b.first ? a.first < b.first : a.last > b.last;
  });
}

}  // namespace

bool is_apart(const Network& network, const WrapPolicy& policy, size_t layer) {
  return policy.batch_norms_apart && network.layers[layer].kind == LayerKind::batch_norm;
}

std::vector<WrappedModule> wrapped_modules(const Network& network, const WrapPolicy& policy) {
  std::vector<WrappedModule> wrapped = policy.modules;
  if (policy.min_num_params > 0) {
    wrapped = wrapped_by_size(network, policy);
  }
  for (const NetworkBlock& module : network.blocks) {
    const WrappedModule layers = layers_of(module);
    const bool is_named = std::find(policy.classes.begin(), policy.classes.end(),
                                    module.class_name) != policy.classes.end();
    const bool is_known = std::find(wrapped.begin(), wrapped.end(), layers) != wrapped.end();
    const bool is_block = policy.repeated_blocks && is_repeated_block(module, wrapped);
    if ((is_named || is_block) && !is_known) {
      wrapped.push_back(layers);
    }
  }
  if (policy.batch_norms_apart) {
    add_batch_norms(network, policy, wrapped);
  }
  return wrapped;
}

std::vector<bool> ignored_layers(const Network& network, const WrapPolicy& policy) {
  std::vector<bool> ignored(network.layers.size(), false);
  for (const std::string& name : policy.ignored) {
    for (size_t layer = 0; layer < ignored.size(); ++layer) {
      ignored[layer] = ignored[layer] || network.layers[layer].name == name;
    }
    for (const NetworkBlock& module : network.blocks) {
      for (size_t layer = module.first; module.class_name == name && layer <= module.last;
           ++layer) {
        ignored[layer] = true;
      }
    }
  }
  return ignored;
}

std::vector<std::string> module_classes(const Network& network) {
  std::vector<std::string> classes;
  for (const NetworkBlock& module : network.blocks) {
    if (std::find(classes.begin(), classes.end(), module.class_name) == classes.end()) {
      classes.push_back(module.class_name);
    }
  }
  return classes;
}

std::vector<TiedOverModules> tied_over_modules(const Network& network, const WrapPolicy& policy) {
  const std::vector<WrappedModule> wrapped = wrapped_modules(network, policy);
  const auto module_of = [&](size_t layer) {
    WrappedModule innermost{0, network.layers.size()};  // the whole, and so in no other
    for (const WrappedModule& module : wrapped) {
      innermost = module.contains(layer) ? module : innermost;
    }
    return innermost;
  };
  std::vector<TiedOverModules> found;
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    const auto tied = network.layers[layer].tied_layer;
    if (!tied || module_of(*tied) == module_of(layer)) {
      continue;
    }
    const WrappedModule of_definition = module_of(*tied);
    const WrappedModule of_use = module_of(layer);
    // Modules are wrapped when all that is in them has been.
    const bool definition_first = of_definition.last != of_use.last
                                      ? of_definition.last < of_use.last
                                      : of_definition.first > of_use.first;
    found.push_back(definition_first ? TiedOverModules{*tied, layer}
                                     : TiedOverModules{layer, *tied});
  }
  return found;
}

}  // namespace lockstep
