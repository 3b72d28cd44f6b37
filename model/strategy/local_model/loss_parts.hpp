#pragma once

#include "model/strategy/local_model/forward_part.hpp"

namespace lockstep {

/// A cross entropy of which each rank has the scores of some classes: nobody gathers them.
class LossParts : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  static bool has(const Network& network);
  Ticket forward(Rank& rank);
  Ticket backward(Rank& rank, double factor, After after);

 private:
  double first_class() const;
  Ticket agree(Rank& rank, const Slice& of_rows, Reduction reduction);
};

}  // namespace lockstep
