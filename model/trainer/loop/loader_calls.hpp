#pragma once

#include "model/trainer/loop/training_context.hpp"

namespace lockstep {

/// How the trainer of a rank gives samplers to loaders of a role.
SamplerPolicy policy_of(const TrainingProgram& program, const TrainerMembership& membership,
                        LoaderRole role);

/// What a loop asks of a data loader on one rank: how it divides its samples, and how many batches
/// it gives.
class LoaderCalls {
 public:
  /// All outlive the calls.
  LoaderCalls(const TrainingContext& context, const TrainerMembership& membership);

  SamplerPolicy policy(LoaderRole role) const { return policy_of(program_, membership_, role); }
  /// Raises where the loader's sampler does.
  void check_sampler(const LoaderSettings& loader, LoaderRole role) const;
  /// Evaluates `batches` and `batch_size` of a loader, where they are expressions.
  Program count_batches(const LoaderSettings& loader, OwnBatches& own);
  /// Rows of the journal: how many batches a loop will run, and that it goes on to one more. Where
  /// ranks have unequal numbers, they say in which batch each rank was.
  void note_batches(const LoaderSettings& loader, int64_t count) const;
  bool goes_on(const LoaderSettings& loader, bool has_more) const;

 private:
  Rank& rank_;
  const TrainingProgram& program_;
  Interpreter& interpreter_;
  const TrainerMembership& membership_;
};

}  // namespace lockstep
