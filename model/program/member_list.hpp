#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep {

/// The global ranks of a group, in group order: never changed, and one list for all who hold it, so
/// that a group of N ranks costs N entries and not N squared.
class MemberList {
 public:
  MemberList() = default;
  MemberList(std::vector<int32_t> ranks)
      : ranks_(std::make_shared<const std::vector<int32_t>>(std::move(ranks))) {}

  operator const std::vector<int32_t>&() const { return ranks(); }
  const std::vector<int32_t>& ranks() const { return ranks_ ? *ranks_ : none; }
  auto begin() const { return ranks().begin(); }
  auto end() const { return ranks().end(); }
  size_t size() const { return ranks().size(); }
  bool empty() const { return ranks().empty(); }
  int32_t operator[](size_t index) const { return ranks()[index]; }
  bool operator==(const MemberList& other) const {
    return ranks_ == other.ranks_ || ranks() == other.ranks();
  }
  bool operator==(const std::vector<int32_t>& other) const { return ranks() == other; }
  /// Whether both hold the one list.
  bool shares(const MemberList& other) const { return ranks_ == other.ranks_; }

 private:
  static inline const std::vector<int32_t> none;

  std::shared_ptr<const std::vector<int32_t>> ranks_;
};

}  // namespace lockstep
