#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/scenario/placed.hpp"

namespace lockstep {

/// The numbers of a tensor as a scenario gives them: one for every element, nested lists, or a
/// file. They are the values with which a parameter or a buffer starts, or the samples of a data
/// set.
struct TensorValues {
  std::string name;            ///< "weight"; of a whole model with its layer: "0.weight"
  Given<std::string> csv;      ///< path, relative to the scenario file
  std::vector<int64_t> shape;  ///< of the lists; of a file its rows and columns
  bool is_constant = false;    ///< one number for every element
  std::shared_ptr<const std::vector<double>> numbers{};  ///< row by row; null: unread
  SourcePlace place{};
};

}  // namespace lockstep
