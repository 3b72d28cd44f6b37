#pragma once

#include <cstdint>
#include <vector>

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// The trained parameters side by side in definition order, as they travel: a message for each
/// server, which holds an equal part of the elements, however tensors lie in it.
class FlatWeights {
 public:
  FlatWeights(const Replica& replica, int32_t servers);

  /// Where a trained parameter begins.
  struct Piece {
    size_t parameter = 0;  ///< an index into Replica::parameters()
    int64_t begin = 0;
    int64_t elements = 0;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  int64_t elements() const { return elements_; }

  struct Part {
    int64_t begin = 0;
    int64_t elements = 0;
  };
  /// What a server holds.
  Part part(int32_t server) const;

 private:
  std::vector<Piece> pieces_;
  int64_t elements_ = 0;
  int32_t servers_;
};

}  // namespace lockstep
