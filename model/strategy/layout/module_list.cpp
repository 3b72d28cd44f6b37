#include "model/strategy/layout/module_list.hpp"

#include <algorithm>

namespace lockstep {

namespace {

bool is_module(const Layer& layer) { return !is_marker(layer.kind); }

}  // namespace

std::vector<ModuleRange> hooked_modules(const Network& network) {
  std::vector<ModuleRange> modules{{0, network.layers.size() - 1, false}};
  for (const NetworkBlock& block : network.blocks) {
    if (block.first < block.last) {
      modules.push_back({block.first, block.last, false});
    }
  }
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    if (is_module(network.layers[layer])) {
      modules.push_back({layer, layer, true});
    }
  }
  std::stable_sort(modules.begin() + 1, modules.end(),
                   [](const ModuleRange& a, const ModuleRange& b) {
                     return a.first != b.first ? a.first < b.first : a.last > b.last;
                   });
  return modules;
}

size_t last_that_saves(const Network& network, std::span<const size_t> layers) {
  const auto last = std::find_if(layers.rbegin(), layers.rend(), [&](size_t layer) {
    const Saves& saves = network.layers[layer].saves;
    return saves.input || saves.output || saves.elements > 0 || saves.fixed > Bytes{};
  });
  return last == layers.rend() ? layers.front() : *last;
}

}  // namespace lockstep
