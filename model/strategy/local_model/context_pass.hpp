#pragma once

#include "model/strategy/local_model/context_attention.hpp"
#include "model/strategy/local_model/forward_part.hpp"

namespace lockstep {

/// An attention of a replica whose samples are parts: each position meets those of other ranks.
class ContextPass : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  void forward(Rank& rank, const LayerRun& run, const LayerTurn& turn, const Slice& output);
  Ticket backward(Rank& rank, const LayerRun& run);

 private:
  ContextPlace place(Rank& rank, const LayerRun& run, std::string_view site) const;
};

}  // namespace lockstep
