#include "model/strategy/server/flat_weights.hpp"

namespace lockstep {

FlatWeights::FlatWeights(const Replica& replica, int32_t servers) : servers_(servers) {
  const std::vector<Replica::Parameter>& parameters = replica.parameters();
  for (size_t index = 0; index < parameters.size(); ++index) {
    if (parameters[index].trainable) {
      const int64_t elements = replica.network().parameter(parameters[index].place).elements();
      pieces_.push_back({index, elements_, elements});
      elements_ += elements;
    }
  }
}

FlatWeights::Part FlatWeights::part(int32_t server) const {
  const int64_t begin = elements_ * server / servers_;
  const int64_t end = elements_ * (server + 1) / servers_;
  return {begin, end - begin};
}

}  // namespace lockstep
