#pragma once

#include <cstdint>

#include "model/core/dtype.hpp"
#include "model/network/network.hpp"

namespace lockstep {

/// Unit round-off of a type: 2^-53, 2^-24, 2^-8, 2^-11; 0 for integers.
double unit_roundoff(DType dtype);

/// gamma_n = n u / (1 - n u): what n rounded operations in a row can do to a term, relative to it
/// (Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1). Infinite when n u >= 1.
double gamma(int64_t operations, DType dtype);

/// Whether two computations of one number are further apart than `bound`. A training that overflows
/// ends in infinities of one run and NaNs of the other, by the order of a sum: numbers that are
/// finite in neither are not apart.
bool beyond_rounding(double here, double there, double bound);

/// Lengths of the sums in a training run.
struct TrainingSize {
  int64_t steps = 1;        ///< optimizer steps
  int64_t samples = 1;      ///< of one step, over all ranks and micro-batches
  int64_t parts = 1;        ///< ranks times micro-batches: partial gradients that are added
  bool clips_norm = false;  ///< gradients are scaled to a norm
};

/// The longest chain of rounded operations from the initial parameters to the final ones.
///
/// A computed sum of n products is the exact sum of products that were each multiplied by at most
/// n factors (1 + d), |d| <= u, in whatever order it is added (Higham, section 3.1). Factors of
/// operations in a row multiply (lemma 3.3), so every term of the final parameter carries at most
/// as many as the longest chain that leads to it, and the chains of one step are
///   forward    in_features of each linear layer, and 1 for its bias; a sum of two branches: 1;
///              batch norm: two sums over the batch, 8 for scaling
///   loss       its classes or elements, and 8 for exponential, logarithm and mean
///              layer norm: two sums over the row, 8 for scaling; GELU: 8; a convolution: its
///              window over the input channels, and 1 for its bias; an average: its window;
///              attention: two projections, the scores over the width of a head, softmax and
///              weighted sum over the positions, 16 for scaling
///   backward   out_features of each linear layer, of a convolution its window over the output
///              channels; attention: four sums over the width, two over the width of a head, four
///              over the positions, 16 for scaling; the others as forward
///   gradient   a sum over samples and positions, then over parts, 2 for averaging
///   clipping   by norm: a sum of the squares of all elements of all gradients, and 8 for the root,
///              the quotient and the product
///   optimizer  at most 16: Adam with weight decay
/// Each step starts from the parameters of the one before, so the steps add up. Both runs have
/// this bound, which gamma turns into a distance of 2 gamma times the sum of the terms' absolute
/// values. That sum is not known after a run; the largest element of the parameter replaces it,
/// which is near enough while updates are small beside the weights, as in the few steps of a
/// rehearsal. Activations are taken to stretch no difference (ReLU does not).
int64_t rounded_operations(const Network& network, const TrainingSize& size);

/// Under mixed precision: how many operations of one step round to the narrow type, since sums are
/// formed in fp32. Of each product its two operands and its result, forth and back, and the
/// gradient of its weight; of attention also the projected input, the probabilities and what they
/// weigh; of any other layer its result, forth and back.
int64_t narrow_operations(const Network& network);

}  // namespace lockstep
