#include "backend/process/other_ranks.hpp"

#include <cstring>
#include <exception>
#include <string>
#include <utility>

namespace lockstep::backend {

OtherRanks::OtherRanks(std::unique_ptr<Board> board, int32_t rank, int32_t ranks)
    : board_(std::move(board)), rank_(rank), seen_(static_cast<size_t>(ranks)) {}

void OtherRanks::tell() {
  if (board_ == nullptr) {
    return;
  }
  ++count_;
  std::vector<uint8_t> word(sizeof count_);
  std::memcpy(word.data(), &count_, sizeof count_);
  try {
    board_->post(std::to_string(rank_), word);
  } catch (const std::exception&) {
    board_.reset();
  }
}

bool OtherRanks::got_on() {
  bool any = false;
  for (size_t rank = 0; board_ != nullptr && rank < seen_.size(); ++rank) {
    if (static_cast<int32_t>(rank) == rank_) {
      continue;
    }
    try {
      auto word = board_->look(std::to_string(rank));
      any = any || word != seen_[rank];
      seen_[rank] = std::move(word);
    } catch (const std::exception&) {
      board_.reset();
    }
  }
  return any;
}

}  // namespace lockstep::backend
