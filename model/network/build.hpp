#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/network/description.hpp"
#include "model/network/network.hpp"

namespace lockstep {

/// An error in a description, and its remedy.
struct NetworkError {
  /// Position in the flattened network; the loss stands behind the last layer.
  size_t layer = 0;
  std::string path{};  ///< where in the description: "layers[2].layers[0]", "loss"
  std::string message{};
  std::string remedy{};
  SourcePlace source{};
  bool is_unmodelled = false;  ///< torch has it, Lockstep does not (yet)
  std::string unknown_kind{};  ///< the layer or loss, where its name is that of no kind here
};

/// Either a network or at least one error.
struct BuildResult {
  Network network{};
  std::vector<NetworkError> errors{};
  bool ok() const { return errors.empty(); }
};

/// Flattens the description, infers every shape and prices every layer. Building stops at the first
/// layer whose output shape is unknown, since all later messages would be guesses.
BuildResult build_network(const NetworkDescription& description);

/// The names a description may use, sorted, containers included.
std::vector<std::string_view> layer_names();
/// The names that `loss` may use.
std::vector<std::string_view> loss_names();
/// A layer that scenarios may name and that is refused as not modelled.
bool is_known_and_unmodelled(std::string_view layer);

}  // namespace lockstep
