#include "backend/device/group_making.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lockstep::backend {

namespace {

std::vector<uint8_t> word_of(int32_t color) {
  std::vector<uint8_t> word(sizeof color);
  std::memcpy(word.data(), &color, sizeof color);
  return word;
}

}  // namespace

GroupMaking::GroupMaking(const Op& op, uint64_t parent, int64_t call,
                         std::span<const int32_t> parent_members, int32_t rank, Board& board)
    : op_(op),
      parent_members_(parent_members),
      board_(board),
      name_(fmt::format("group/{:016x}/{}/", parent, call)),
      color_(parent_members.size()) {
  const bool by_color = (op.flags & flag_color) != 0;
  board_.post(name_ + std::to_string(rank), word_of(by_color ? op.peer : no_color));
}

bool GroupMaking::all_came() {
  while (came_ < color_.size()) {
    const auto word = board_.look(name_ + std::to_string(parent_members_[came_]));
    if (!word || word->size() != sizeof(int32_t)) {
      return false;
    }
    int32_t color = no_color;
    std::memcpy(&color, word->data(), sizeof color);
    color_[came_++] = color;
  }
  return true;
}

std::vector<int32_t> GroupMaking::members() const {
  std::vector<int32_t> members;
  if ((op_.flags & flag_color) == 0) {
    for (const int64_t member : op_.list().splits) {
      members.push_back(static_cast<int32_t>(member));
    }
    return members;
  }
  for (size_t member = 0; op_.peer != no_color && member < color_.size(); ++member) {
    if (color_[member] == op_.peer) {
      members.push_back(parent_members_[member]);
    }
  }
  std::ranges::sort(members);
  return members;
}

}  // namespace lockstep::backend
