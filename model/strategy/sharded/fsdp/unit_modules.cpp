#include "model/strategy/sharded/fsdp/unit_modules.hpp"

#include <algorithm>

namespace lockstep {

std::vector<UnitModule> unit_modules(const Replica& replica, const WrapPolicy& wrap,
                                     const WrappedModule& root) {
  const Network& network = replica.network();
  std::vector<UnitModule> modules{{root, {}, true}};
  for (const WrappedModule& module : wrapped_modules(network, wrap)) {
    const WrappedModule here{std::max(module.first, root.first), std::min(module.last, root.last)};
    if (here.first <= here.last) {
      modules.push_back({here, {}, false});
    }
  }
  const std::vector<bool> ignored = ignored_layers(network, wrap);
  for (size_t index = 0; index < replica.parameters().size(); ++index) {
    const size_t layer = replica.parameters()[index].place.layer;
    if (ignored[layer] || !root.contains(layer)) {
      continue;
    }
    size_t owner = 0;
    for (size_t module = 1; module < modules.size(); ++module) {
      owner = modules[module].module.contains(layer) ? module : owner;
    }
    modules[owner].parameters.push_back(index);
  }
  std::erase_if(modules, [](const UnitModule& module) { return module.parameters.empty(); });
  return modules;
}

std::vector<ShardLayout::Rows> rows_of(const Replica& replica,
                                       const std::vector<size_t>& parameters) {
  std::vector<ShardLayout::Rows> rows;
  for (const size_t index : parameters) {
    const ParameterTensor& tensor = replica.network().parameter(replica.parameters()[index].place);
    const int64_t count = tensor.shape.empty() ? 1 : tensor.shape.front();
    rows.push_back({count, count == 0 ? 0 : tensor.elements() / count});
  }
  return rows;
}

}  // namespace lockstep
