#include "model/network/network_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {

bool NetworkBuilder::add_all(const std::vector<LayerDescription>& descriptions, LayerLevel& level) {
  for (size_t i = 0; i < descriptions.size(); ++i) {
    if (!add(descriptions[i], level, fmt::format("{}[{}]", level.path, i))) {
      return false;
    }
  }
  return true;
}

bool NetworkBuilder::add(const LayerDescription& description, LayerLevel& level,
                         const std::string& path) {
  if (!is_container(description.kind) && !description.layers.empty()) {
    complain(path, description.source, fmt::format("{} holds no layers", description.kind),
             "use Sequential, Residual, Concatenate, Multiply, Aside or repeat");
    return false;
  }
  if (is_container(description.kind) && !description.initial.empty()) {
    complain(path, description.initial.front().place,
             fmt::format("{} has no parameters of its own", description.kind),
             "write `initial` on the layers in it");
    return false;
  }
  if (description.kind != "Residual" && description.kind != "Aside" &&
      !description.shortcut.empty()) {
    complain(path, description.source, fmt::format("{} has no shortcut", description.kind),
             "use Residual");
    return false;
  }
  if (description.kind == "Sequential") {
    return add_sequential(description, level, path);
  }
  if (description.kind == "Residual" || description.kind == "Concatenate" ||
      description.kind == "Multiply") {
    return add_residual(description, level, path);
  }
  if (description.kind == "Aside") {
    return add_aside(description, level, path);
  }
  if (description.kind == "TransformerEncoderLayer") {
    return add_encoder_layer(description, level, path);
  }
  if (description.kind == "repeat") {
    return add_repeat(description, level, path);
  }
  return add_layer(description, level, path);
}

/// An explicit name, or the number in the container as torch.nn.Sequential gives it.
std::string NetworkBuilder::name_for(ArgumentReader& arguments, LayerLevel& level) {
  const std::string number = fmt::format("{}", level.next_number++);
  if (!arguments.has("name")) {
    return level.prefix + number;
  }
  const std::string name = arguments.text("name", number);
  return level.prefix + name + (name.empty() ? "" : level.suffix);
}

/// An empty name adds no level: a residual of GPT-2 has no module of its own.
LayerLevel NetworkBuilder::inner_level(const std::string& name, const std::string& path,
                                       const LayerLevel& outer) {
  const bool is_nameless = name == outer.prefix;
  return {.prefix = is_nameless ? name : name + ".", .path = path + ".layers"};
}

bool NetworkBuilder::add_sequential(const LayerDescription& description, LayerLevel& level,
                                    const std::string& path) {
  ArgumentReader arguments(description, {});
  LayerLevel inside = inner_level(name_for(arguments, level), path, level);
  const auto recomputation = read_checkpoint(arguments);
  if (!finish(arguments, path)) {
    return false;
  }
  const size_t first = begin_segment(recomputation);
  const bool repeats = !description.block_class.empty();
  const size_t block = begin_block(repeats ? description.block_class : description.kind, repeats);
  const bool fine = add_all(description.layers, inside);
  end_block(block);
  end_segment(first, recomputation);
  return fine;
}

bool NetworkBuilder::add_residual(const LayerDescription& description, LayerLevel& level,
                                  const std::string& path) {
  ArgumentReader arguments(description, {});
  LayerLevel inside = inner_level(name_for(arguments, level), path, level);
  const auto recomputation = read_checkpoint(arguments);
  if (!finish(arguments, path)) {
    return false;
  }
  const size_t first = begin_segment(recomputation);
  const size_t block = begin_block(description.kind, false);
  const Shape remembered = shape_;
  add_marker(LayerKind::residual_begin, inside, remembered);
  if (!add_all(description.layers, inside)) {
    return false;
  }
  const Shape result = shape_;
  if (description.kind != "Residual") {
    const bool is_product = description.kind == "Multiply";
    if (!(is_product ? can_multiply(description, remembered, path)
                     : can_join(description, remembered, path))) {
      return false;
    }
    Shape joined = remembered;
    joined.front() += is_product ? 0 : result.front();
    add_marker(is_product ? LayerKind::residual_multiply : LayerKind::residual_concatenate, inside,
               joined);
    end_block(block);
    end_segment(first, recomputation);
    return true;
  }
  if (!description.shortcut.empty()) {
    add_marker(LayerKind::residual_shortcut, inside, remembered);
    inside.path = path + ".shortcut";
    if (!add_all(description.shortcut, inside)) {
      return false;
    }
  } else {
    shape_ = remembered;
  }
  if (shape_ != result) {
    complain(path, description.source,
             fmt::format("a residual adds {} to {}", text_of(result), text_of(shape_)),
             fmt::format("give `shortcut` layers that end in {}", text_of(result)));
    return false;
  }
  add_marker(LayerKind::residual_add, inside, result);
  end_block(block);
  end_segment(first, recomputation);
  return true;
}

/// Whether what was remembered can stand before the result: all sizes but the first are equal.
bool NetworkBuilder::can_join(const LayerDescription& description, const Shape& remembered,
                              const std::string& path) {
  if (!remembered.empty() && remembered.size() == shape_.size() &&
      std::equal(remembered.begin() + 1, remembered.end(), shape_.begin() + 1)) {
    return true;
  }
  complain(path, description.source,
           fmt::format("{} cannot stand before {}: only the first sizes may differ",
                       text_of(remembered), text_of(shape_)),
           "let its `layers` keep all sizes but the first");
  return false;
}

/// Whether each size of the result is that of what was remembered, or 1.
bool NetworkBuilder::can_multiply(const LayerDescription& description, const Shape& remembered,
                                  const std::string& path) {
  bool fits = remembered.size() == shape_.size() && !remembered.empty();
  for (size_t i = 0; fits && i < shape_.size(); ++i) {
    fits = shape_[i] == 1 || shape_[i] == remembered[i];
  }
  if (!fits) {
    complain(path, description.source,
             fmt::format("{} cannot be multiplied by {}", text_of(remembered), text_of(shape_)),
             fmt::format("let its `layers` end in {}, or in 1 where one factor is for all",
                         text_of(remembered)));
  }
  return fits;
}

bool NetworkBuilder::add_repeat(const LayerDescription& description, LayerLevel& level,
                                const std::string& path) {
  ArgumentReader arguments(description, {"times"});
  const int64_t times = arguments.integer("times");
  const auto recomputation = read_checkpoint(arguments);
  if (arguments.ok() && (times < 0 || times > most_layers)) {
    arguments.complain(fmt::format("repeat {} times", times),
                       fmt::format("write 0 to {}", most_layers));
  }
  if (!finish(arguments, path)) {
    return false;
  }
  const std::string outer_path = std::exchange(level.path, path + ".layers");
  const std::string outer_suffix = level.suffix;
  bool fine = true;
  for (int64_t turn = 0; turn < times && fine; ++turn) {
    level.suffix = fmt::format("{}.{}", outer_suffix, turn);
    const size_t first = begin_segment(recomputation);
    const size_t block = begin_block(description.kind, true);
    fine = ++turns_ <= most_layers && add_all(description.layers, level);
    end_block(block);
    end_segment(first, recomputation);
    if (turns_ > most_layers && result_.ok()) {
      complain(path, description.source, fmt::format("more than {} turns", most_layers),
               "repeat fewer times");
    }
  }
  level.path = outer_path;
  level.suffix = outer_suffix;
  return fine;
}

/// What `checkpoint` asks for.
std::optional<Recomputation> NetworkBuilder::read_checkpoint(ArgumentReader& arguments) {
  const std::string word = arguments.word("checkpoint", "false");
  const auto mark = checkpoint_mark(word);
  if (!mark) {
    arguments.complain(fmt::format("no way to checkpoint is called `{}`", word),
                       "write true, false, torch or fairscale");
    return std::nullopt;
  }
  if (mark->recomputation && in_segment_) {
    arguments.complain("a checkpointed segment inside of another",
                       "keep one of the two: mark the container, or layers in it");
  }
  return mark->recomputation;
}

/// The segment's first layer is the next one.
size_t NetworkBuilder::begin_segment(const std::optional<Recomputation>& recomputation) {
  in_segment_ = in_segment_ || recomputation;
  return result_.network.layers.size();
}

void NetworkBuilder::end_segment(size_t first, const std::optional<Recomputation>& recomputation) {
  if (!recomputation) {
    return;
  }
  in_segment_ = false;
  if (result_.network.layers.size() > first) {
    result_.network.segments.push_back({first, result_.network.layers.size() - 1, *recomputation});
  }
}

size_t NetworkBuilder::begin_block(std::string class_name, bool repeats) {
  std::vector<NetworkBlock>& blocks = result_.network.blocks;
  blocks.push_back({std::move(class_name), result_.network.layers.size(), 0, repeats});
  return blocks.size() - 1;
}

void NetworkBuilder::end_block(size_t block) {
  std::vector<NetworkBlock>& blocks = result_.network.blocks;
  if (result_.network.layers.size() > blocks[block].first) {
    blocks[block].last = result_.network.layers.size() - 1;
  } else {  // without layers, and so the last one
    blocks.resize(block);
  }
}

void NetworkBuilder::add_marker(LayerKind kind, const LayerLevel& inside, const Shape& output) {
  const std::string wanted = inside.prefix + std::string(name_of(kind));
  std::string name;
  do {
    const int64_t turn = ++markers_[wanted];
    name = turn == 1 ? wanted : fmt::format("{}_{}", wanted, turn);
  } while (!layer_of_name_.emplace(name, result_.network.layers.size()).second);
  Layer layer{.kind = kind, .name = std::move(name)};
  layer.input = shape_;
  layer.output = output;
  layer.work = {Work{.runs = false}, Work{.runs = false}, Work{.runs = false}};
  // The sum is one kernel forward; backward adds the two branches' gradients where they began.
  if (kind == LayerKind::residual_concatenate) {
    layer.work[static_cast<size_t>(Pass::forward)] = {.elements = 2 * elements_of(output)};
  } else if (kind == LayerKind::residual_multiply) {
    // Backward multiplies the gradient by either factor, and sums one of the products over what its
    // factor was for.
    const int64_t whole = elements_of(output);
    layer.work[static_cast<size_t>(Pass::forward)] = {.elements = 2 * whole + elements_of(shape_)};
    layer.work[static_cast<size_t>(Pass::input_gradient)] = {
        .elements = (elements_of(shape_) == whole ? 6 : 7) * whole};
    layer.saves.input = true;
    layer.saves.branch = true;
  } else if (kind == LayerKind::residual_add) {
    layer.work[static_cast<size_t>(Pass::forward)] = {.elements = 3 * elements_of(output)};
  } else if (kind == LayerKind::residual_begin) {
    layer.work[static_cast<size_t>(Pass::input_gradient)] = {.elements = 3 * elements_of(output)};
  }
  shape_ = output;
  result_.network.layers.push_back(std::move(layer));
}

}  // namespace lockstep
