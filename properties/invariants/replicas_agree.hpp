#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/core/values.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// One rank's copy of a value that all ranks of its group should hold alike.
struct ReplicaValues {
  int32_t rank = 0;
  std::string group;  ///< tag of a group of replicas: "data parallel 0"
  std::string name;   ///< "layer 3 weight"
  Values values;
};

/// Replicas are equal bit for bit (LS305). One finding per group: its first name that differs.
std::vector<Finding> replicas_agree(std::span<const ReplicaValues> replicas);

}  // namespace lockstep
