#include "model/strategy/pipeline/stage_cuts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "model/core/ensure.hpp"
#include "model/core/nearest_sizes.hpp"

namespace lockstep {

bool may_cut_before(const Network& network, size_t layer) {
  int64_t open = 0;
  for (size_t before = 0; before < layer; ++before) {
    open += network.layers[before].kind == LayerKind::residual_begin ? 1 : 0;
    open -= ends_residual(network.layers[before].kind) ? 1 : 0;
  }
  const CheckpointedSegment* segment = network.segment_of(layer);
  return open == 0 && (segment == nullptr || segment->first == layer);
}

namespace {

StageCuts stages_between(const Network& network, const std::vector<size_t>& first_layers) {
  StageCuts cuts;
  size_t first = 0;
  for (const size_t next : first_layers) {
    cuts.stages.push_back({first, next});
    first = next;
  }
  cuts.stages.push_back({first, network.layers.size()});
  return cuts;
}

/// The first layers of outermost blocks that repeat.
std::vector<size_t> repeated_blocks(const Network& network) {
  std::vector<size_t> first_layers;
  size_t end = 0;
  for (const NetworkBlock& block : network.blocks) {
    if (block.repeats && block.first >= end) {
      first_layers.push_back(block.first);
      end = block.last + 1;
    }
  }
  return first_layers;
}

size_t most_parts(const Network& network) {
  size_t parts = 1;
  for (size_t layer = 1; layer < network.layers.size(); ++layer) {
    parts += may_cut_before(network, layer) ? 1 : 0;
  }
  return parts;
}

std::string remedy_of_few_blocks(const Network& network, int32_t blocks, int32_t stages) {
  const auto parts = static_cast<int32_t>(most_parts(network));
  if (parts < stages) {
    return fmt::format("use {} stages at most, with split: parameters", parts);
  }
  return blocks > 0 ? fmt::format("write split: parameters, or use {} stages at most", blocks)
                    : "write split: parameters, or put what repeats into `repeat`";
}

StageCuts cut_by_blocks(const Network& network, int32_t stages, const EndsInBlocks& ends) {
  const std::vector<size_t> blocks = repeated_blocks(network);
  const auto count = static_cast<int32_t>(blocks.size());
  if (count < stages) {
    return {
        {},
        fmt::format("the network has {} blocks that repeat, fewer than {} stages", count, stages),
        remedy_of_few_blocks(network, count, stages)};
  }
  const int32_t counted = count + ends.first + ends.last;
  const bool begins_with_block = blocks.front() == 0;
  if (stages > 1 && (ends.first + (begins_with_block ? 1 : 0) > counted / stages ||
                     ends.last >= counted / stages)) {
    return {{},
            fmt::format("{} blocks and ends that count as {} and {} leave the first or the last of "
                        "{} stages without layers",
                        count, ends.first, ends.last, stages),
            "let them count as fewer blocks, or use fewer stages"};
  }
  std::vector<size_t> first_layers;
  int32_t next = -ends.first;
  for (int32_t stage = 0; stage + 1 < stages; ++stage) {
    next += counted / stages + (stage < counted % stages ? 1 : 0);
    first_layers.push_back(blocks[static_cast<size_t>(next)]);
    if (!may_cut_before(network, first_layers.back())) {
      return {
          {},
          fmt::format("the block that begins at layer {} is within another", first_layers.back()),
          "write split: parameters or time"};
    }
  }
  return stages_between(network, first_layers);
}

/// The parts of a network between two neighbouring places where it may be cut.
struct Piece {
  size_t first = 0;
  double weight = 0;
};

std::vector<Piece> pieces_of(const Network& network,
                             const std::function<double(const Layer&)>& weight_of) {
  std::vector<Piece> pieces;
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    if (layer == 0 || may_cut_before(network, layer)) {
      pieces.push_back({layer});
    }
    pieces.back().weight += weight_of(network.layers[layer]);
  }
  return pieces;
}

/// The first layers of stages none of which weighs more than `limit`, each as long as it may be
/// while a piece is left for every stage behind it; more than `stages - 1` of them where the limit
/// is too low.
std::vector<size_t> fill_stages(const std::vector<Piece>& pieces, size_t stages, double limit) {
  std::vector<size_t> first_layers;
  double weight = pieces.front().weight;
  for (size_t piece = 1; piece < pieces.size(); ++piece) {
    const size_t stages_left = stages - std::min(stages, first_layers.size() + 1);
    const bool must_begin = pieces.size() - piece <= stages_left;
    if (must_begin || weight + pieces[piece].weight > limit) {
      first_layers.push_back(pieces[piece].first);
      weight = 0;
    }
    weight += pieces[piece].weight;
  }
  return first_layers;
}

StageCuts cut_by_weight(const Network& network, int32_t stages,
                        const std::function<double(const Layer&)>& weight_of) {
  const std::vector<Piece> pieces = pieces_of(network, weight_of);
  if (std::ssize(pieces) < stages) {
    return {{},
            fmt::format("the network can be cut into {} parts at most, fewer than {} stages",
                        pieces.size(), stages),
            fmt::format("use {} stages at most", pieces.size())};
  }
  double fits = 0;
  double too_low = 0;
  for (const Piece& piece : pieces) {
    too_low = std::max(too_low, piece.weight);
    fits += piece.weight;
  }
  too_low = std::nextafter(too_low, 0.0);
  const auto wanted = static_cast<size_t>(stages);
  constexpr int halvings = 60;  // then neighbouring numbers
  for (int i = 0; i < halvings; ++i) {
    const double between = (fits + too_low) / 2;
    (fill_stages(pieces, wanted, between).size() < wanted ? fits : too_low) = between;
  }
  return stages_between(network, fill_stages(pieces, wanted, fits));
}

}  // namespace

StageCuts cut_into_stages(const Network& network, int32_t stages, StageSplit split,
                          const EndsInBlocks& ends) {
  switch (split) {
    case StageSplit::blocks: return cut_by_blocks(network, stages, ends);
    case StageSplit::parameters:
      return cut_by_weight(network, stages, [](const Layer& layer) {
        double elements = 0;
        for (const ParameterTensor& parameter : layer.parameters) {
          elements += static_cast<double>(parameter.elements());
        }
        return elements;
      });
    case StageSplit::time:
      return cut_by_weight(network, stages, [](const Layer& layer) {
        return static_cast<double>((flops_of(layer, Pass::forward, 1) +
                                    flops_of(layer, Pass::input_gradient, 1) +
                                    flops_of(layer, Pass::weight_gradient, 1))
                                       .count());
      });
  }
  return {};
}

namespace {

/// Where a cut may be instead, on both sides.
std::string remedy_of_place(const Network& network, size_t layer) {
  std::vector<int64_t> places;
  for (size_t below = layer; below-- > 1;) {
    if (may_cut_before(network, below)) {
      places.push_back(static_cast<int64_t>(below));
      break;
    }
  }
  for (size_t above = layer + 1; above < network.layers.size(); ++above) {
    if (may_cut_before(network, above)) {
      places.push_back(static_cast<int64_t>(above));
      break;
    }
  }
  return places.empty() ? "use fewer stages: the network has no place for a cut"
                        : fmt::format("cut before layer {}", one_of_numbers(places));
}

}  // namespace

StageCuts cut_before_layers(const Network& network, int32_t stages,
                            const std::vector<int64_t>& first_layers) {
  if (std::ssize(first_layers) != stages - 1) {
    return {{},
            fmt::format("{} stages have {} cuts, here {}", stages, stages - 1, first_layers.size()),
            stages == 1 ? "leave split out, or use more stages"
                        : fmt::format("write {} layers in split, or use {} stages", stages - 1,
                                      first_layers.size() + 1)};
  }
  std::vector<size_t> layers;
  for (const int64_t layer : first_layers) {
    const int64_t least = layers.empty() ? 1 : static_cast<int64_t>(layers.back()) + 1;
    if (layer < least || layer >= std::ssize(network.layers)) {
      return {{},
              fmt::format("a cut before layer {} leaves a stage without layers; the network has "
                          "layers 0 to {}",
                          layer, network.layers.size() - 1),
              fmt::format("write ascending numbers from 1 to {}", network.layers.size() - 1)};
    }
    if (!may_cut_before(network, static_cast<size_t>(layer))) {
      return {{},
              fmt::format("layer {} ({}) is inside a skip connection or a checkpointed segment",
                          layer, network.layers[static_cast<size_t>(layer)].name),
              remedy_of_place(network, static_cast<size_t>(layer))};
    }
    layers.push_back(static_cast<size_t>(layer));
  }
  return stages_between(network, layers);
}

namespace {

/// Where a layer of the whole network begins in the part: at the exchange of its input, or of that
/// of a module which begins with it.
size_t begin_in_part(const Layer& layer, const Network& part) {
  const auto found = std::ranges::find(part.layers, layer.name, &Layer::name);
  ensure(found != part.layers.end(), "a part has every layer of the whole");
  auto begin = static_cast<size_t>(found - part.layers.begin());
  const auto is_for_it = [&](const Layer& before) {
    const std::string module = before.name.substr(0, before.name.find(' '));
    return before.kind == LayerKind::exchange && (layer.name + ".").starts_with(module + ".");
  };
  while (begin > 0 && is_for_it(part.layers[begin - 1])) {
    --begin;
  }
  return begin;
}

}  // namespace

std::vector<StageLayers> stages_of_part(const std::vector<StageLayers>& stages,
                                        const Network& whole, const Network& part) {
  std::vector<StageLayers> mapped;
  for (const StageLayers& stage : stages) {
    const size_t begin = stage.first == 0 ? 0 : begin_in_part(whole.layers[stage.first], part);
    if (!mapped.empty()) {
      mapped.back().end = begin;
    }
    mapped.push_back({begin, part.layers.size()});
  }
  return mapped;
}

}  // namespace lockstep
