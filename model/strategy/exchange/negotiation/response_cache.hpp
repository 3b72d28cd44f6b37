#pragma once

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
  const TensorRequest& at(size_t position) const { return entries_[position].request; }
  /// The response was carried out. A full cache gives up what was used longest ago. Broadcasts and
  /// joins are never kept.
  void put(const TensorRequest& request);

 private:
  struct Entry {
    TensorRequest request;
    uint64_t used = 0;
  };
  size_t capacity_;
  std::vector<Entry> entries_;
  uint64_t uses_ = 0;
};

}  // namespace lockstep
