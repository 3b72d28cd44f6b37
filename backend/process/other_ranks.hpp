#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/device/board.hpp"
#include "backend/rank/progress.hpp"

namespace lockstep::backend {

/// The other processes of a run, by a board on which each counts while it gets on. A rank that is
/// stopped, killed or waits counts no further. Where the board is gone nobody gets on.
class OtherRanks final : public Elsewhere {
 public:
  OtherRanks(std::unique_ptr<Board> board, int32_t rank, int32_t ranks);
  void tell() override;
  bool got_on() override;

 private:
  std::unique_ptr<Board> board_;
  int32_t rank_;
  uint64_t count_ = 0;
  std::vector<std::optional<std::vector<uint8_t>>> seen_;  ///< by rank
};

}  // namespace lockstep::backend
