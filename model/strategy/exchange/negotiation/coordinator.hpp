#pragma once

#include <map>
#include <set>
#include <vector>

#include "model/strategy/exchange/negotiation/tensor_request.hpp"

namespace lockstep {

/// What rank 0 keeps of requests that are not in the cache: a name is ready once every rank has
/// asked for it that has not joined (Controller::IncrementTensorCount, ConstructResponse).
class Coordinator {
 public:
  explicit Coordinator(int32_t ranks) : ranks_(ranks) {}

  void add(int32_t rank, const TensorRequest& request);
  /// What is ready, in the order in which it became so; at last the join of all.
  std::vector<TensorResponse> take_ready();
  /// No rank waits for others, and none has joined.
  bool is_empty() const { return asked_.empty() && joined_.empty(); }

 private:
  struct Asked {
    TensorRequest first;
    std::map<int32_t, int64_t> elements;           ///< by rank that has asked
    std::map<int32_t, TensorRequest> otherwise{};  ///< by rank that has asked for something else
    bool is_ready = false;
  };

  bool is_complete(const Asked& asked) const;
  static std::map<int32_t, TensorRequest> requests_of(const Asked& asked);
  TensorResponse response_to(const Asked& asked) const;

  int32_t ranks_;
  std::set<int32_t> joined_;
  std::map<int64_t, Asked> asked_;        ///< by the number of the first request
  std::map<TensorName, int64_t> number_;  ///< of those that are asked for
  int64_t next_ = 0;
  std::vector<TensorName> ready_;
};

}  // namespace lockstep
