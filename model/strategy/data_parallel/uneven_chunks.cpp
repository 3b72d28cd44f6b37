#include "model/strategy/data_parallel/uneven_chunks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace lockstep {

void UnevenChunks::note(const std::vector<Batch>& chunks) {
  const auto differs = [&chunks](const Batch& chunk) {
    return chunk.size() != chunks.front().size();
  };
  if (first_.empty() && std::ranges::any_of(chunks, differs)) {
    for (const Batch& chunk : chunks) {
      first_.push_back(chunk.size());
    }
  }
}

void UnevenChunks::add_difference(const Network& network,
                                  std::vector<KnownDifference>& known) const {
  const auto* loss = std::get_if<LossArguments>(&network.loss.arguments);
  if (first_.empty() || (loss != nullptr && !loss->mean)) {
    return;
  }
  known.push_back(
      {fmt::format("a batch of {} samples is cut into {}, and the loss is the mean of the devices' "
                   "own means: a sample of a short chunk counts more than one of the others",
                   std::accumulate(first_.begin(), first_.end(), int64_t{0}),
                   fmt::join(first_, " + ")),
       "take a batch size that the devices divide (with drop_last: true where the last batch is "
       "short), or compute the loss in training_step_end (model: {loss_in: training_step_end})"});
}

}  // namespace lockstep
