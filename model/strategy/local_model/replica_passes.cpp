// Several forwards of a replica that one backward goes through.
#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

StepOptions BackwardPass::applied_to(const StepOptions& options) const {
  StepOptions applied = options;
  applied.loss_factor *= is_output ? 1 : loss_factor;
  applied.output_gradient = output_gradient;
  return applied;
}

void Replica::keep_forward() { kept_.push_back(std::exchange(now_, Forward())); }

void Replica::drop_forward(Rank& rank, int64_t number) {
  const auto kept = std::ranges::find(kept_, number, &Forward::number);
  if (kept != kept_.end()) {
    release_forward(rank, *kept);
    kept_.erase(kept);
  }
}

std::vector<BackwardPass> Replica::take_passes(const StepOptions& options) {
  if (!passes_.empty()) {
    return std::exchange(passes_, {});
  }
  return {{now_.number, 1, options.output_gradient, !options.output_gradient.empty()}};
}

void Replica::turn_to(int64_t number) {
  if (now_.number == number) {
    return;
  }
  const auto kept = std::ranges::find(kept_, number, &Forward::number);
  ensure(kept != kept_.end(), "a backward goes through the last forward or a kept one");
  std::swap(now_, *kept);
}

void Replica::return_to(int64_t last) {
  turn_to(last);
  std::erase_if(kept_, [](const Forward& forward) {
    return forward.trace.empty() && forward.transient.empty();
  });
}

const Replica::Forward& Replica::forward_of(int64_t number) const {
  const auto kept = std::ranges::find(kept_, number, &Forward::number);
  return kept == kept_.end() ? now_ : *kept;
}

bool Replica::fills_gradients(const Forward& forward, size_t layer) const {
  const bool ran = std::ranges::count(forward.trace, layer, &LayerRun::layer) != 0;
  return ran && layer >= forward.first_wanted_layer &&
         std::ranges::any_of(trainable_of(layer), [&](size_t index) {
           return !forward.only_optimizer ||
                  is_held_by(*forward.only_optimizer, parameters_[index]);
         });
}

bool Replica::adds_later(std::span<const BackwardPass> passes, size_t pass, size_t layer) const {
  const auto later = passes.subspan(pass + 1);
  return std::ranges::any_of(later, [&](const BackwardPass& each) {
    return fills_gradients(forward_of(each.forward), layer);
  });
}

std::vector<size_t> Replica::layers_of_backward() const {
  std::vector<const Forward*> forwards;
  if (passes_.empty()) {
    forwards.push_back(&now_);
    for (const Forward& forward : kept_) {
      forwards.push_back(&forward);
    }
  }
  for (const BackwardPass& pass : passes_) {
    forwards.push_back(&forward_of(pass.forward));
  }
  std::vector<size_t> layers;
  for (const Forward* forward : forwards) {
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

}  // namespace lockstep
