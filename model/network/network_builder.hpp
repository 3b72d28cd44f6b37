#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/network/argument_reader.hpp"
#include "model/network/build.hpp"
#include "model/network/checkpointing.hpp"
#include "model/network/layer_kind.hpp"

namespace lockstep {

inline constexpr int64_t most_layers = 1'000'000;

bool is_container(std::string_view kind);

/// The place of the next layer in a list: the prefix of its name and its number.
struct LayerLevel {
  std::string prefix{};  ///< "" or "layer1.0."
  std::string path{};    ///< "layers", "layers[2].shortcut"
  std::string suffix{};  ///< of explicit names: distinguishes the turns of a repeat
  int64_t next_number = 0;
};

/// A tensor that layers inside of an Aside may read.
struct OpenAside {
  std::string name{};
  AsideInput tensor{};
  bool is_read = false;
};

/// Walks a description in order and appends layer after layer. Containers and names are in
/// network_builder.cpp, single layers and the whole in build.cpp.
class NetworkBuilder {
 public:
  explicit NetworkBuilder(const NetworkDescription& description) : description_(description) {
    result_.network.name = description.name;
    result_.network.input_dtype = description.input_dtype;
  }

  BuildResult build();

 private:
  bool find_input();
  bool add_all(const std::vector<LayerDescription>& descriptions, LayerLevel& level);
  bool add(const LayerDescription& description, LayerLevel& level, const std::string& path);
  bool add_layer(const LayerDescription& description, LayerLevel& level, const std::string& path);
  bool add_sequential(const LayerDescription& description, LayerLevel& level,
                      const std::string& path);
  bool add_residual(const LayerDescription& description, LayerLevel& level,
                    const std::string& path);
  bool can_join(const LayerDescription& description, const Shape& remembered,
                const std::string& path);
  bool can_multiply(const LayerDescription& description, const Shape& remembered,
                    const std::string& path);
  bool add_aside(const LayerDescription& description, LayerLevel& level, const std::string& path);
  OpenAside* find_aside(ArgumentReader& arguments, std::string_view kind);
  bool add_encoder_layer(const LayerDescription& description, LayerLevel& level,
                         const std::string& path);
  bool add_repeat(const LayerDescription& description, LayerLevel& level, const std::string& path);
  void add_loss();
  void read_initial(const TensorValues& values, const std::string& tensor, Layer& layer,
                    const std::string& path);
  void read_initial_of_model();

  std::optional<Recomputation> read_checkpoint(ArgumentReader& arguments);
  size_t begin_segment(const std::optional<Recomputation>& recomputation);
  void end_segment(size_t first, const std::optional<Recomputation>& recomputation);
  /// The block's first layer is the next one. Returns its index.
  size_t begin_block(std::string class_name, bool repeats);
  void end_block(size_t block);

  const LayerKindEntry* find_kind(std::string_view name) const;
  void fill(const LayerKindEntry& kind, ArgumentReader& arguments, Layer& layer);
  void read_common(ArgumentReader& arguments, Layer& layer);
  void check_among_others(ArgumentReader& arguments, const Layer& layer);
  bool finish(ArgumentReader& arguments, const std::string& path);
  bool tie(ArgumentReader& arguments, Layer& layer);
  void add_marker(LayerKind kind, const LayerLevel& inside, const Shape& output);
  std::string name_for(ArgumentReader& arguments, LayerLevel& level);
  LayerLevel inner_level(const std::string& name, const std::string& path, const LayerLevel& outer);
  void complain(const std::string& path, const SourcePlace& source, std::string message,
                std::string remedy);

  const NetworkDescription& description_;
  BuildResult result_;
  const std::vector<LayerKindEntry> kinds_ = layer_kinds();
  Shape shape_;
  std::map<std::string, size_t> layer_of_name_;
  std::map<std::string, int64_t> markers_;  ///< how often a marker's name was wanted
  std::vector<OpenAside> asides_;           ///< the innermost last
  int64_t turns_ = 0;                       ///< of all repeats
  bool in_segment_ = false;                 ///< of activation checkpointing
  Int128 parameter_elements_ = 0;
};

}  // namespace lockstep
