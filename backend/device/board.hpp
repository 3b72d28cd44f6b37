#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::backend {

/// Where the ranks of a run leave word for each other, as c10d::Store. Never waits for a rank.
/// Throws DeviceError when the board is gone.
class Board {
 public:
  virtual ~Board() = default;
  virtual void post(const std::string& key, const std::vector<uint8_t>& word) = 0;
  /// Nothing, until somebody has posted it.
  virtual std::optional<std::vector<uint8_t>> look(const std::string& key) = 0;
};

}  // namespace lockstep::backend
