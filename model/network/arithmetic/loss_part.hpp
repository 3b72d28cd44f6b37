#pragma once

#include <cstdint>

#include "model/core/values.hpp"
#include "model/network/loss_part.hpp"

namespace lockstep {

// Reference arithmetic of a cross entropy whose scores lie on several ranks, each of which has some
// of the classes in every row: Megatron-LM's vocabulary-parallel cross entropy and torch's
// loss_parallel. What one rank computes between the exchanges.

/// The classes of this rank: so many, from `first` on, of `parts` times as many.
struct ClassPart {
  int64_t classes = 0;
  int64_t first = 0;
  int64_t parts = 1;
};

void greatest_of_rows(const Values& scores, int64_t classes, Values& greatest);
/// A target that is no class of any rank throws ArithmeticError.
void loss_terms(const Values& scores, const Values& targets, const Values& greatest,
                const ClassPart& part, Values& target_scores, Values& sums);
/// The mean over rows that count, or the sum, of log(sum) - score of the target.
void loss_of_terms(const Values& target_scores, const Values& sums, const Values& targets,
                   bool mean, Values& loss);

struct LossPartOperands {
  const Values& scores;
  const Values& targets;
  const Values& greatest;
  const Values& sums;
};
/// (softmax(scores) - one at the target) factor, over the rows that count for the mean: the columns
/// of this rank.
void loss_part_backward(const LossPartOperands& operands, const ClassPart& part, bool mean,
                        double factor, Values& score_gradient);

}  // namespace lockstep
