#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of the normalised, temperature-scaled cross entropy of two views of each
// sample (NT-Xent: Chen et al. 2020, "A Simple Framework for Contrastive Learning of Visual
// Representations"), as lightly's NTXentLoss computes it: each view is compared with all views of
// all samples but itself, and the other view of its sample is the right answer.

/// embeddings [samples, 2, features]. `first` and `second` [samples, features] get the two views
/// of each sample, divided by their lengths (at least 1e-12).
void normalised_views(const Values& embeddings, int64_t features, Values& first, Values& second);
/// The gradient of `embeddings` from those of the normalised views, summed over `own` and `shared`.
struct ViewGradients {
  const Values& first;
  const Values& second;
  const Values& first_of_all;  ///< what comes through the views that samples are compared with
  const Values& second_of_all;
};
void views_backward(const Values& embeddings, int64_t features, const ViewGradients& gradients,
                    Values& embedding_gradient);

/// Views of the samples of this rank, and of all samples that they are compared with:
/// [samples, features] and [all samples, features], in which those of this rank begin at
/// `first_sample`.
struct ComparedViews {
  const Values& first;
  const Values& second;
  const Values& first_of_all;
  const Values& second_of_all;
  int64_t features = 0;
  int64_t first_sample = 0;
  double temperature = 0.5;
};
/// Mean over both views of the samples of this rank.
void contrastive_forward(const ComparedViews& views, Values& loss);
/// Gradients of the four tensors, times `factor`. Overwrites.
struct ComparedGradients {
  Values& first;
  Values& second;
  Values& first_of_all;
  Values& second_of_all;
};
void contrastive_backward(const ComparedViews& views, double factor, ComparedGradients gradients);

}  // namespace lockstep
