#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "model/network/layer.hpp"

namespace lockstep {

/// Whether runs can carry values through a layer of this kind without a tensor library: its
/// functions are in model/network/arithmetic/. Layers that only pass values on (flatten, buffer) or
/// add them (residual) count.
bool has_reference_arithmetic(LayerKind kind);

/// Values that a layer cannot take: an index beyond its table, a class that does not exist, one
/// value to normalise over. Data cause it, so it is no bug; torch raises there too.
class ArithmeticError : public std::runtime_error {
 public:
  ArithmeticError(const std::string& what, std::string remedy)
      : std::runtime_error(what), remedy_(std::move(remedy)) {}
  const std::string& remedy() const { return remedy_; }

 private:
  std::string remedy_;
};

}  // namespace lockstep
