#pragma once

#include <deque>
#include <memory>

#include "model/program/shared_values.hpp"

namespace lockstep::sim {

/// Results of pure functions that many simulated ranks ask for one after the other, of the same
/// values: each is computed once while it is among the last.
class SharedResults {
 public:
  std::shared_ptr<const void> of(const PureCall& call);

 private:
  static constexpr size_t most = 64;
  struct Known {
    const void* function = nullptr;
    std::vector<SharedValues> arguments;  ///< held, so that no other values get their address
    std::shared_ptr<const void> result;
  };
  std::deque<Known> known_;  ///< oldest first
};

}  // namespace lockstep::sim
