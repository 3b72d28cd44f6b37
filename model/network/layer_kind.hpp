#pragma once

#include <string_view>
#include <vector>

#include "model/network/argument_reader.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

/// The surroundings of a layer while it is built.
struct LayerContext {
  const Shape& input;
  bool flash_attention;
  const Shape* aside = nullptr;  ///< of what was put aside, where the kind reads it
};

/// One kind of torch.nn layer: its name, the order of its positional arguments, and the function
/// that reads the arguments, checks the input shape and fills output, tensors, work and saves.
struct LayerKindEntry {
  std::string_view name;
  std::vector<std::string_view> positions;
  void (*fill)(const LayerContext&, ArgumentReader&, Layer&);
  bool reads_aside = false;
};

/// All kinds; containers are not among them.
std::vector<LayerKindEntry> layer_kinds();

// The groups that make up the table, one source file each.
std::vector<LayerKindEntry> dense_layer_kinds();
std::vector<LayerKindEntry> spatial_layer_kinds();
std::vector<LayerKindEntry> attention_layer_kinds();
std::vector<LayerKindEntry> decoder_layer_kinds();
std::vector<LayerKindEntry> mixture_layer_kinds();
std::vector<LayerKindEntry> recurrent_layer_kinds();
std::vector<LayerKindEntry> rearranging_layer_kinds();
std::vector<LayerKindEntry> scaling_layer_kinds();
std::vector<LayerKindEntry> window_layer_kinds();
std::vector<LayerKindEntry> aside_layer_kinds();
std::vector<LayerKindEntry> plain_layer_kinds();
std::vector<LayerKindEntry> activation_layer_kinds();
std::vector<LayerKindEntry> norm_layer_kinds();
std::vector<LayerKindEntry> convolution_layer_kinds();
std::vector<LayerKindEntry> loss_layer_kinds();

/// An elementwise kernel: reads and writes each element once in both directions, has no weights.
void fill_pointwise(const LayerContext& context, Layer& layer);
/// Complains and returns false unless the input has `count` dimensions.
bool has_dimensions(const LayerContext& context, size_t count, std::string_view layout,
                    ArgumentReader& arguments);
/// No tensor of a sample, and no parameter, is greater: products of sizes with small factors then
/// stay within 64 bits.
inline constexpr int64_t most_elements = int64_t{1} << 48;
/// Complains and returns false where the output, a parameter or a buffer is greater.
bool has_possible_size(const Layer& layer, ArgumentReader& arguments);
/// Complains and returns false unless the input's first size is `channels`.
bool has_channels(const LayerContext& context, int64_t channels, std::string_view argument,
                  ArgumentReader& arguments);
/// The output is the input's own memory, and no kernel runs.
void be_view(const LayerContext& context, Layer& layer);
/// Complains and returns false unless value > 0.
bool is_positive(int64_t value, std::string_view name, ArgumentReader& arguments);

}  // namespace lockstep
