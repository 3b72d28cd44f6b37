#pragma once

#include <string>
#include <variant>
#include <vector>

#include "model/expression/value.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// Why a result has no value.
struct NoValue {
  std::string reason;
  bool never = false;  ///< no run of this kind gives it: not judged, rather than not met
};

/// The value of a result on one rank; where it differs by rank, that rank's own.
std::variant<Value, NoValue> value_of(const ResultName& name, const Rehearsal& rehearsal,
                                      int32_t rank);

/// Valid names in `transfers.NAME` for these results: `total`, operations, labels of the strategy.
std::vector<std::string> transfer_names(const Results& results);

/// Whether ranks may have different values.
bool differs_by_rank(const ResultName& name);
/// A figure of the machine (time, memory, transfers, ..), which only a simulation or a real run of
/// the machine gives.
bool is_quantity(const ResultName& name);

}  // namespace lockstep::cli
