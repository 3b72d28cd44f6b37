#pragma once

#include <cstdint>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of losses of two views of each sample, of which the views are compared with
// those of all samples by their cosines over a temperature.

/// What is compared with what.
enum class ComparisonKind : uint8_t {
  /// Each view with all views of all samples but itself; the other view of its sample is the right
  /// answer of a cross entropy (Chen et al. 2020, "A Simple Framework for Contrastive Learning of
  /// Visual Representations"; lightly, NTXentLoss).
  nt_xent,
  /// Each first view with all second views; that of its sample is the right answer (van den Oord et
  /// al. 2018, "Representation Learning with Contrastive Predictive Coding").
  info_nce,
  /// The same both ways, and the mean of the two (Radford et al. 2021, "Learning Transferable
  /// Visual Models From Natural Language Supervision").
  both_ways,
  /// Each pair of a first and a second view by itself, by a logistic loss: whether they are of one
  /// sample (Zhai et al. 2023, "Sigmoid Loss for Language Image Pre-Training").
  pairs,
  /// Each view with all views but itself, of which all with its label are right answers (Khosla et
  /// al. 2020, "Supervised Contrastive Learning", the loss outside of the logarithm).
  labels,
};

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
  ComparisonKind kind = ComparisonKind::nt_xent;
  double bias = 0;                 ///< of `pairs`, added to what the temperature has divided
  double factor = 1;               ///< of `labels`
  const Values* labels = nullptr;  ///< of `labels`, one for each sample
};
/// Mean over the views of the samples of this rank that are compared; of `pairs` the sum over all
/// pairs, for each sample of this rank.
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
