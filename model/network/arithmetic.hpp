#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "model/network/layer.hpp"

namespace lockstep {

/// The layer draws random numbers in training.
bool draws(const Layer& layer);

/// Why runs cannot carry values through this layer without a tensor library ("dropout is random in
/// training"); empty: they can, its functions are in model/network/arithmetic/.
std::string why_without_arithmetic(const Layer& layer, bool training);
bool has_reference_arithmetic(const Layer& layer, bool training);

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
