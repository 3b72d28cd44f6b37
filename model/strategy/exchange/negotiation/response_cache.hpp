#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/strategy/exchange/negotiation/tensor_request.hpp"

namespace lockstep {

/// What ranks have agreed on before: a tensor that is here needs one bit to be asked for. All ranks
/// put the same responses in, in one order, so that a position means the same on each
/// (horovod/common/response_cache.cc).
class ResponseCache {
 public:
  /// 0: nothing is kept.
  explicit ResponseCache(size_t capacity) : capacity_(capacity) {}

  size_t positions() const { return entries_.size(); }
  std::optional<size_t> position_of(const TensorRequest& request) const;
  /// The entry of this name that the request does not fit any more: the tensor has changed.
  std::optional<size_t> outdated_by(const TensorRequest& request) const;
  const TensorResponse& at(size_t position) const { return entries_[position].response; }
  /// The response was carried out, for which this rank had asked with `own`. A full cache gives up
  /// what was used longest ago. Only what reduces or gathers is kept.
  void put(const TensorResponse& response, const TensorRequest& own);
  /// Ascending positions, the same on all ranks.
  void erase(const std::vector<size_t>& positions);
  /// What it holds is numbered anew whenever that changes; then the positions in their order of
  /// use.
  void add_numbers(std::vector<int64_t>& numbers) const;
  /// Whether it has a name of NameSpace::unnamed with this number or a larger one.
  bool has_unnamed_from(int64_t number) const;

 private:
  struct Entry {
    TensorResponse response;
    TensorRequest own;  ///< of all_gather: with this rank's part
    uint64_t used = 0;
  };
  size_t capacity_;
  std::vector<Entry> entries_;
  std::map<TensorName, size_t> position_;  ///< of each in these
  uint64_t uses_ = 0;
  int64_t version_ = 0;
};

}  // namespace lockstep
