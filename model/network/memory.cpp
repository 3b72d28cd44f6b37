#include "model/network/memory.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "model/core/ensure.hpp"
#include "model/network/internal_tensors.hpp"

namespace lockstep {

namespace {

constexpr size_t nobody = std::numeric_limits<size_t>::max();

/// A tensor on its way through the network, and the layers between which it is read.
struct Tensor {
  Bytes bytes{};  ///< of one sample; 0: the batch, which is no tensor of the network's
  int64_t elements = 0;
  DType dtype = DType::fp32;
  std::optional<size_t> maker{};
  size_t first = 0;
  size_t last = 0;
  bool has_gradient = false;
  /// The first layer that saves it: backward comes to that one last, and frees it.
  size_t kept_by = nobody;
  size_t recomputed_by = nobody;  ///< the same, in the segment that makes it again
};

struct SkipPath {
  size_t remembered = 0;
  std::optional<size_t> put_aside{};
  size_t other() const { return put_aside.value_or(remembered); }
};

/// Weights whose every element a product reads: what autocast converts.
int64_t converted_weights(const Layer& layer) {
  return is_product(layer.kind) ? layer.weight_elements : 0;
}

/// The layers of one module, or of the whole network, and what they hold.
class ModuleMemory {
 public:
  ModuleMemory(const Network& network, const ComputingTypes& types, size_t begin, size_t end)
      : network_(network), types_(types), begin_(begin), end_(end), layers_(end - begin) {
    inputs_.resize(end - begin);
    outputs_.resize(end - begin);
    branches_.resize(end - begin);
    depths_.resize(end - begin);
  }

  /// `feeds_module`: its output is the input of another module, which keeps it.
  void find(const Layer& loss, DType input, bool feeds_module) {
    walk_forward(input);
    for (size_t layer = begin_; layer < end_; ++layer) {
      keep_saved(layer);
    }
    Tensor& output = tensors_[current_];
    if (feeds_module && output.maker) {
      output.kept_by = std::min(output.kept_by, *output.maker);
    } else if (loss.saves.input && !converts_input(loss, output)) {
      output.kept_by = std::min(output.kept_by, end_);
    }
    find_loss(loss);
    sum_forward();
    walk_backward();
  }

  const std::vector<LayerMemory>& layers() const { return layers_; }
  const LayerMemory& loss() const { return loss_; }

 private:
  Bytes bytes_of(int64_t elements, DType dtype) const { return Bytes(size_of(dtype)) * elements; }
  const Layer& layer(size_t index) const { return network_.layers[index]; }
  /// Of a layer, or of the loss behind the last.
  LayerMemory& at(size_t index) { return index < end_ ? layers_[index - begin_] : loss_; }
  size_t input_of(size_t index) const { return inputs_[index - begin_]; }
  size_t output_of(size_t index) const { return outputs_[index - begin_]; }

  DType reading_type(const Layer& layer, const Tensor& input) const {
    return lockstep::reading_type(layer, input.dtype, types_);
  }
  bool converts_input(const Layer& layer, const Tensor& input) const {
    return reading_type(layer, input) != input.dtype;
  }

  size_t add_tensor(size_t maker, int64_t elements, DType dtype, bool has_gradient) {
    tensors_.push_back(
        {bytes_of(elements, dtype), elements, dtype, maker, maker, maker, has_gradient});
    return tensors_.size() - 1;
  }

  void walk_forward(DType input);
  size_t pass(size_t index, std::vector<SkipPath>& paths);
  void keep_saved(size_t index);
  void find_loss(const Layer& loss);
  void sum_forward();
  void walk_backward();
  Bytes backward_of(const Layer& layer, const Tensor& input, Bytes incoming) const;

  const Network& network_;
  const ComputingTypes& types_;
  size_t begin_;
  size_t end_;
  std::vector<LayerMemory> layers_;
  LayerMemory loss_;
  std::vector<Tensor> tensors_;
  std::vector<size_t> inputs_;    ///< by layer, the tensor that it reads
  std::vector<size_t> outputs_;   ///< by layer, the tensor that it hands on
  std::vector<size_t> branches_;  ///< by layer, the tensor that it reads beside
  std::vector<size_t> depths_;    ///< by layer that begins a residual, how many are open around it
  size_t current_ = 0;
};

void ModuleMemory::walk_forward(DType input) {
  const bool wanted =
      begin_ > 0 && begin_ < end_ && layer(begin_).work_of(Pass::input_gradient).runs;
  tensors_.push_back({.dtype = is_floating(input) ? types_.parameters : input,
                      .first = begin_,
                      .last = begin_,
                      .has_gradient = wanted});
  if (begin_ < end_) {
    tensors_.back().elements = elements_of(layer(begin_).input);
  }
  std::vector<SkipPath> paths;
  for (size_t index = begin_; index < end_; ++index) {
    inputs_[index - begin_] = current_;
    tensors_[current_].last = index;
    current_ = pass(index, paths);
    outputs_[index - begin_] = current_;
    tensors_[current_].last = index;
  }
  ensure(paths.empty(), "every residual is closed");
  tensors_[current_].last = end_;
}

/// Makes the output of the layer, or hands on what is there.
size_t ModuleMemory::pass(size_t index, std::vector<SkipPath>& paths) {
  const Layer& layer = this->layer(index);
  const Tensor input = tensors_[current_];
  if (layer.kind == LayerKind::residual_begin) {
    depths_[index - begin_] = paths.size();
    paths.push_back({current_, std::nullopt});
    return current_;
  }
  if (layer.kind == LayerKind::aside_end) {
    paths.pop_back();
    return current_;
  }
  if (layer.kind == LayerKind::residual_shortcut) {
    paths.back().put_aside = current_;
    return paths.back().remembered;
  }
  if (layer.saves.is_view) {
    return current_;
  }
  bool has_gradient = input.has_gradient || is_trainable(network_, layer);
  DType branch = input.dtype;
  if (layer.aside) {
    const size_t read = paths.at(depths_[layer.aside->begin - begin_]).other();
    branches_[index - begin_] = read;
    tensors_[read].last = index;
    has_gradient = has_gradient || tensors_[read].has_gradient;
  }
  if (ends_residual(layer.kind)) {
    Tensor& other = tensors_[paths.back().other()];
    other.last = index;
    branches_[index - begin_] = paths.back().other();
    branch = other.dtype;
    has_gradient = has_gradient || other.has_gradient;
    paths.pop_back();
  }
  return add_tensor(index, elements_of(layer.output),
                    output_type(layer, input.dtype, branch, types_), has_gradient);
}

/// What the layer saves goes to the tensor that it is, or to the layer's own account.
void ModuleMemory::keep_saved(size_t index) {
  const Layer& layer = this->layer(index);
  const CheckpointedSegment* segment = network_.segment_of(index);
  const bool is_core =
      segment != nullptr && segment->recomputation == Recomputation::attention_core;
  const bool runs_again = segment != nullptr && !is_core;
  const auto keep = [&](Tensor& tensor, bool inside) {
    const bool made_inside = inside && tensor.maker && segment->contains(*tensor.maker);
    size_t& saver = made_inside ? tensor.recomputed_by : tensor.kept_by;
    saver = std::min(saver, index);
  };
  Tensor& input = tensors_[input_of(index)];
  Bytes own = own_saves(layer, reading_type(layer, input)) +
              (types_.is_mixed() ? saves_of_autocast(layer) : Bytes{});
  const ConvertedCopies copies = converted_copies(layer);
  if (layer.saves.input && (converts_input(layer, input) || copies_input(layer))) {
    own += bytes_of(input.elements, reading_type(layer, input)) * copies.of_input;
  } else if (layer.saves.input) {
    keep(input, runs_again);
  }
  if (segment != nullptr && segment->first == index) {
    input.kept_by = std::min(input.kept_by, index);
  }
  if (layer.saves.output) {
    keep(tensors_[output_of(index)], runs_again);
  }
  if (layer.saves.branch || (segment != nullptr && layer.aside)) {
    Tensor& branch = tensors_[branches_[index - begin_]];
    const bool is_converted =
        layer.saves.branch && is_product(layer.kind) && converts_input(layer, branch);
    if (is_converted) {
      own += bytes_of(branch.elements, reading_type(layer, branch)) * copies.of_branch;
    }
    if (!is_converted || (segment != nullptr && layer.aside)) {
      keep(branch, runs_again);
    }
  }
  const Bytes again = runs_again ? own : is_core ? core_saves(layer, types_.activations) : Bytes{};
  at(index).recomputed += again;
  at(index).kept += own - again;
  if (types_.is_mixed()) {
    at(index).weight_copies = bytes_of(converted_weights(layer), types_.activations);
    at(index).keeps_weight_copies = input.has_gradient && !runs_again;
  }
}

/// Log-softmax writes what its backward reads; the gradient of the picked scores is as large, and
/// so is that of the scores. Both losses compute in fp32 under autocast.
void ModuleMemory::find_loss(const Layer& loss) {
  const Tensor& scores = tensors_[current_];
  const DType dtype = reading_type(loss, scores);
  const Bytes whole = bytes_of(scores.elements, dtype);
  const bool converts = dtype != scores.dtype;
  loss_.kept = Bytes(size_of(dtype)) * loss.saves.elements + loss.saves.fixed;
  if (loss.saves.input && converts) {
    loss_.kept += whole;
  }
  loss_.forward = converts && !loss.saves.input ? whole : Bytes{};
  loss_.evaluated = whole + (converts ? whole : Bytes{});
  if (loss.kind == LayerKind::mse_loss) {
    loss_.forward += whole;  // the squares, of which the mean is made
  }
  if (scores.has_gradient) {
    const bool is_entropy = loss.kind == LayerKind::cross_entropy_loss;
    const Bytes narrowed = converts ? scores.bytes : Bytes{};
    loss_.backward = std::max(is_entropy ? whole + whole : whole, whole + narrowed);
    loss_.after_backward = converts ? narrowed : whole;
  }
}

/// Bytes that come before some layers and go behind others, summed by layer.
class Presence {
 public:
  explicit Presence(size_t count) : changes_(count + 1) {}
  /// During layers [from, until).
  void add(Bytes bytes, size_t from, size_t until) {
    changes_[from] += bytes;
    changes_[until] -= bytes;
  }
  std::vector<Bytes> sums() const {
    std::vector<Bytes> sums(changes_.size() - 1);
    Bytes sum{};
    for (size_t i = 0; i < sums.size(); ++i) {
      sum += changes_[i];
      sums[i] = sum;
    }
    return sums;
  }

 private:
  std::vector<Bytes> changes_;
};

/// Sums the tensors that are there while each layer runs; a kept one until it is accounted there.
void ModuleMemory::sum_forward() {
  const size_t count = end_ - begin_ + 1;
  Presence all(count);
  Presence unkept(count);
  for (const Tensor& tensor : tensors_) {
    const size_t from = tensor.first - begin_;
    const size_t until = tensor.last - begin_ + 1;
    all.add(tensor.bytes, from, until);
    unkept.add(tensor.bytes, from, std::min(until, std::max(from, tensor.kept_by - begin_)));
    if (tensor.kept_by != nobody) {
      at(tensor.kept_by).kept += tensor.bytes;
    }
    if (tensor.recomputed_by != nobody) {
      at(tensor.recomputed_by).recomputed += tensor.bytes;
    }
  }
  const std::vector<Bytes> all_there = all.sums();
  const std::vector<Bytes> unkept_there = unkept.sums();
  for (size_t i = 0; i < count; ++i) {
    LayerMemory& here = at(begin_ + i);
    here.forward += unkept_there[i];
    here.evaluated += all_there[i];
  }
  for (size_t index = begin_; index < end_; ++index) {
    const Layer& each = layer(index);
    const Tensor& input = tensors_[input_of(index)];
    const DType dtype = reading_type(each, input);
    const Bytes inside = forward_workspace(each, dtype);
    const Bytes copy = converts_input(each, input) ? bytes_of(input.elements, dtype) : Bytes{};
    at(index).forward += inside + (each.saves.input ? Bytes{} : copy);
    at(index).evaluated += inside + copy + own_saves(each, dtype);
  }
}

/// The gradients that one layer's backward holds beside those that wait. The narrow gradient of a
/// converted input becomes one of the input's own type when the incoming one has gone.
Bytes ModuleMemory::backward_of(const Layer& layer, const Tensor& input, Bytes incoming) const {
  const Bytes outgoing = input.has_gradient ? input.bytes : Bytes{};
  Bytes most = incoming + outgoing;
  if (converts_input(layer, input) && input.has_gradient) {
    const Bytes narrow = bytes_of(input.elements, reading_type(layer, input));
    most = std::max(incoming + narrow, narrow + outgoing);
  }
  return std::max(most, backward_workspace(layer, types_.activations));
}

void ModuleMemory::walk_backward() {
  std::vector<Bytes> waiting;  ///< gradients on skip paths, outermost first
  Bytes waits{};
  bool shared = false;  ///< the current gradient is the one that waits
  for (size_t index = end_; index-- > begin_;) {
    const Layer& each = layer(index);
    LayerMemory& here = at(index);
    const Tensor& input = tensors_[input_of(index)];
    const Tensor& output = tensors_[output_of(index)];
    if (each.kind == LayerKind::residual_multiply) {
      // Its own two gradients stand beside that of the product, and then one of them waits.
      const Bytes branch = tensors_[branches_[index - begin_]].bytes;
      here.backward = waits + (shared ? Bytes{} : output.bytes) + branch + input.bytes;
      waiting.push_back(branch);
      waits += branch;
      shared = false;
    } else if (each.kind == LayerKind::aside_end) {
      waiting.emplace_back();  // the gradients of its readers come first
      here.backward = waits + (shared ? Bytes{} : output.bytes);
    } else if (ends_residual(each.kind)) {
      waiting.push_back(output.bytes);
      waits += output.bytes;
      // Parts of a joined gradient are views of it.
      shared = each.kind == LayerKind::residual_concatenate || input.dtype == output.dtype;
      here.backward = waits + (shared ? Bytes{} : input.bytes);
    } else if (each.kind == LayerKind::residual_shortcut) {
      // The shortcut's gradient waits now, and that of the sum goes on: `output` is what both read.
      here.backward = waits + output.bytes;
      waits += output.bytes - waiting.back();
      waiting.back() = output.bytes;
      shared = false;
    } else if (each.kind == LayerKind::residual_begin) {
      here.backward = waits + (shared ? Bytes{} : output.bytes);
      waits -= waiting.back();
      waiting.pop_back();
      shared = false;
    } else if (each.aside) {
      const Bytes beside = tensors_[branches_[index - begin_]].bytes;
      Bytes& sum = waiting.at(depths_[each.aside->begin - begin_]);
      // Each reader's gradient of it is added to those of the readers behind.
      waits += beside - sum;
      sum = beside;
      here.backward = waits + beside + backward_of(each, input, shared ? Bytes{} : output.bytes);
      shared = false;
    } else if (hands_gradient_on(each)) {
      here.backward = waits + (shared ? Bytes{} : output.bytes);
    } else {
      here.backward = waits + backward_of(each, input, shared ? Bytes{} : output.bytes);
      shared = false;
    }
    here.after_backward = waits + (input.has_gradient && !shared ? input.bytes : Bytes{});
  }
}

}  // namespace

NetworkMemory memory_of(const Network& network, const ComputingTypes& types) {
  NetworkMemory whole;
  const auto add = [&](size_t begin, size_t end, const Layer& loss, DType input, bool feeds) {
    ModuleMemory part(network, types, begin, end);
    part.find(loss, input, feeds);
    whole.layers.insert(whole.layers.end(), part.layers().begin(), part.layers().end());
    whole.losses.push_back(part.loss());
  };
  if (network.modules.empty()) {
    add(0, network.layers.size(), network.loss, network.input_dtype, false);
  }
  for (const NetworkModule& module : network.modules) {
    add(module.first_layer, module.end_layer, module.loss, module.input_dtype,
        module.end_layer < network.layers.size());
  }
  return whole;
}

}  // namespace lockstep
