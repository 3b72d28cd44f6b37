#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// The whole parameters of a unit as the layers of a replica read them, and the gradients that
/// backwards leave of them: in the replica those of the last one, here those that earlier ones have
/// left to be reduced with them.
class WholeParameters {
 public:
  /// `parameters`: indices into Replica::parameters(), in definition order. The replica outlives
  /// them.
  WholeParameters(Replica& replica, std::vector<size_t> parameters)
      : replica_(&replica), parameters_(std::move(parameters)) {}

  Replica& replica() const { return *replica_; }
  /// Indices into Replica::parameters().
  const std::vector<size_t>& indices() const { return parameters_; }
  size_t count() const { return parameters_.size(); }
  Replica::Parameter& operator[](size_t number) const {
    return replica_->parameters()[parameters_[number]];
  }
  int64_t elements(size_t number) const {
    return replica_->network().parameter((*this)[number].place).elements();
  }
  /// The number of the one with this index.
  size_t number_of(size_t parameter) const;

  /// As the last backward left it, or as earlier ones did; no_buffer if it is None.
  const Slice& gradient(size_t number) const;
  bool has_gradients() const;
  /// Whether earlier backwards have left some.
  bool keeps_gradients() const;
  /// The gradients of the last backward are kept in this type, added to those of earlier ones.
  void keep_gradients(Rank& rank, DType type, SiteId site);
  /// Makes all of them None.
  void forget_gradients(Rank& rank);

 private:
  void forget_last_gradients(Rank& rank);

  Replica* replica_;
  std::vector<size_t> parameters_;
  std::vector<Slice> kept_;  ///< gradients of earlier backwards, by number; empty: none
};

}  // namespace lockstep
