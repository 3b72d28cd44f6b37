#pragma once

#include "model/strategy/local_model/forward_part.hpp"

namespace lockstep {

/// A layer of a replica whose layers are parts: what travels between the ranks that have the rest.
class LayerExchange : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  void forward(Rank& rank, const LayerRun& run, const Slice& output);
  Ticket backward(Rank& rank, const LayerRun& run);

 private:
  struct Tensor;
  Ticket exchange(Rank& rank, TensorExchange how, const Tensor& tensor, SiteId site);
  Ticket sum_over_ranks(Rank& rank, const Tensor& tensor, SiteId site);
  Ticket gather_parts(Rank& rank, const Tensor& tensor, SiteId site);
  Ticket scatter_sums(Rank& rank, const Tensor& tensor, SiteId site);
  Ticket take_own_part(Rank& rank, const Tensor& tensor, SiteId site);
  Ticket travel_again(Rank& rank, const Tensor& tensor, SiteId site);
  Tensor exchanged(const Layer& layer, const ExchangeArguments& how) const;
  DType type_behind(size_t layer) const;
  const TensorRanks& ranks() const { return state_.division().layers; }
};

}  // namespace lockstep
