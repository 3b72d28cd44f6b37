#include "model/strategy/local_model/forward_history.hpp"

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/wanted_gradients.hpp"

namespace lockstep {

StepOptions BackwardPass::applied_to(const StepOptions& options) const {
  StepOptions applied = options;
  applied.loss_factor *= is_output ? 1 : loss_factor;
  applied.output_gradient = output_gradient;
  return applied;
}

void ForwardHistory::keep() { kept_.push_back(std::exchange(now_, ForwardRecord())); }

void ForwardHistory::drop(Rank& rank, int64_t number) {
  const auto kept = std::ranges::find(kept_, number, &ForwardRecord::number);
  if (kept != kept_.end()) {
    kept->release(rank);
    kept_.erase(kept);
  }
}

std::vector<BackwardPass> ForwardHistory::take_passes(const StepOptions& options) {
  if (!passes_.empty()) {
    return std::exchange(passes_, {});
  }
  return {{now_.number, 1, options.output_gradient, !options.output_gradient.empty()}};
}

void ForwardHistory::turn_to(int64_t number) {
  if (now_.number == number) {
    return;
  }
  const auto kept = std::ranges::find(kept_, number, &ForwardRecord::number);
  ensure(kept != kept_.end(), "a backward goes through the last forward or a kept one");
  std::swap(now_, *kept);
}

void ForwardHistory::return_to(int64_t last) {
  turn_to(last);
  std::erase_if(kept_, [](const ForwardRecord& forward) {
    return forward.trace.empty() && forward.transient.empty();
  });
}

const ForwardRecord& ForwardHistory::forward_of(int64_t number) const {
  const auto kept = std::ranges::find(kept_, number, &ForwardRecord::number);
  return kept == kept_.end() ? now_ : *kept;
}

bool ForwardHistory::adds_later(const ReplicaState& state, std::span<const BackwardPass> passes,
                                size_t pass, size_t layer) const {
  const auto later = passes.subspan(pass + 1);
  return std::ranges::any_of(later, [&](const BackwardPass& each) {
    return fills_gradients(state, forward_of(each.forward), layer);
  });
}

std::vector<size_t> ForwardHistory::layers_of_backward() const {
  std::vector<const ForwardRecord*> forwards;
  if (passes_.empty()) {
    forwards.push_back(&now_);
    for (const ForwardRecord& forward : kept_) {
      forwards.push_back(&forward);
    }
  }
  for (const BackwardPass& pass : passes_) {
    forwards.push_back(&forward_of(pass.forward));
  }
  std::vector<size_t> layers;
  for (const ForwardRecord* forward : forwards) {
    for (const LayerRun& run : forward->trace) {
      if (run.layer >= forward->first_wanted_layer) {
        layers.push_back(run.layer);
      }
    }
  }
  std::ranges::sort(layers, std::greater<>());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

void ForwardHistory::release(Rank& rank) {
  now_.release(rank);
  for (ForwardRecord& forward : kept_) {
    forward.release(rank);
  }
  kept_.clear();
}

}  // namespace lockstep
