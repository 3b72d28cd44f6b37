#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace lockstep::sim {

/// Numbers one after the other, to be compared with others: most are small, and take a byte or two.
/// Two lists are equal exactly where their numbers and the ends of lists among them are.
class StateWords {
 public:
  /// Seven bits a byte, the lowest first, in as few bytes as it takes; the sign is the lowest bit.
  void add(int64_t word) {
    uint64_t left = static_cast<uint64_t>(word) << 1 ^ static_cast<uint64_t>(word >> 63);
    while (left >= more) {
      bytes_.push_back(static_cast<uint8_t>(left | more));
      left >>= 7;
    }
    bytes_.push_back(static_cast<uint8_t>(left));
  }
  /// No number is written so: it would end with a byte that it does not need.
  void end_list() {
    bytes_.push_back(more);
    bytes_.push_back(0);
  }

  bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }
  /// Gives back the memory that it has room for and does not need.
  void trim() { bytes_.shrink_to_fit(); }
  bool operator==(const StateWords&) const = default;
  size_t size_bytes() const { return bytes_.size(); }
  /// Of lists that are equal.
  size_t hash() const {
    return std::hash<std::string_view>()(
        std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()));
  }

 private:
  static constexpr uint8_t more = 0x80;

  std::vector<uint8_t> bytes_;
};

}  // namespace lockstep::sim
