#pragma once

#include <cstdint>
#include <vector>

#include "model/network/arithmetic/experts.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

/// The weights of experts as one tensor each. Where they are grouped, expert by expert, these are
/// copies.
class ExpertParameters {
 public:
  /// `first`: the index of w1 of the first expert among the reads.
  ExpertParameters(const MixtureArguments& mixture, const LayerCall& call, size_t first) {
    const auto experts = static_cast<size_t>(mixture.own_experts());
    const auto weights = static_cast<size_t>(mixture.weights_per_expert());
    copies_.reserve(experts * weights);
    for (size_t expert = 0; expert < experts; ++expert) {
      ExpertWeights& own = weights_.emplace_back();
      for (size_t weight = 0; weight < weights; ++weight) {
        if (!mixture.grouped) {
          own[weight] = &call.read(first + expert * weights + weight);
          continue;
        }
        const Values& all = call.read(first + weight);
        const int64_t size = all.size() / static_cast<int64_t>(experts);
        own[weight] = &copies_.emplace_back(all.slice(static_cast<int64_t>(expert) * size, size));
      }
    }
  }
  const std::vector<ExpertWeights>& weights() const { return weights_; }

 private:
  std::vector<ExpertWeights> weights_;
  std::vector<Values> copies_;
};

/// Where the gradients of experts are added to. Of grouped weights each expert's part is taken
/// apart, and put back by store().
class ExpertGradientParts {
 public:
  /// `first`: the index of w1 of the first expert among the writes.
  ExpertGradientParts(const MixtureArguments& mixture, LayerCall& call, size_t first) {
    const auto experts = static_cast<size_t>(mixture.own_experts());
    const auto weights = static_cast<size_t>(mixture.weights_per_expert());
    parts_.reserve(experts * weights);
    for (size_t expert = 0; expert < experts; ++expert) {
      ExpertGradients& own = gradients_.emplace_back();
      for (size_t weight = 0; weight < weights; ++weight) {
        const size_t at = first + (mixture.grouped ? weight : expert * weights + weight);
        Values* const all = call.write_if(at);
        if (!mixture.grouped || all == nullptr) {
          own[weight] = all;
          continue;
        }
        const int64_t size = all->size() / static_cast<int64_t>(experts);
        const int64_t begin = static_cast<int64_t>(expert) * size;
        parts_.push_back({all, begin, all->slice(begin, size)});
        own[weight] = &parts_.back().values;
      }
    }
  }
  const std::vector<ExpertGradients>& gradients() const { return gradients_; }
  void store() {
    for (const Part& part : parts_) {
      part.whole->assign(part.begin, part.values);
    }
  }

 private:
  struct Part {
    Values* whole;
    int64_t begin;
    Values values;
  };
  std::vector<ExpertGradients> gradients_;
  std::vector<Part> parts_;
};

/// The parts of a mixture whose experts ranks divide; which one is scalar 3 of a forward and 2 of a
/// backward (MixturePart in mixture.hpp).
void mixture_part_forward(const MixtureArguments& mixture, LayerCall& call);
void mixture_part_backward(const MixtureArguments& mixture, LayerCall& call);

}  // namespace lockstep
