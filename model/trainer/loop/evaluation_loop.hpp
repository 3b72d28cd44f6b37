#pragma once

#include <map>
#include <utility>

#include "model/trainer/loop/counted_decisions.hpp"
#include "model/trainer/loop/repeated_loop.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

enum class EvaluationKind : uint8_t { validate, test, predict };

/// One run of an evaluation loop (evaluation_loop.py). Its loaders are set up at its first run.
class EvaluationLoop {
 public:
  EvaluationLoop(Training& training, EvaluationKind kind)
      : training_(training),
        kind_(kind),
        results_(training.interpreter(), training.strategy(), training.program(), false),
        decisions_(training.program().repetition, places_that_decide(training)) {}

  /// The loaders' collectives: a barrier, and a sum of each loader's length. Once, or again where
  /// they are reloaded; without it, at the first run.
  Program set_up();
  /// At most `batches_max` batches of each loader. `sanity`: its values are dropped.
  Program run(int64_t batches_max, bool sanity);
  /// There are loaders, and some of their batches are allowed.
  bool is_enabled() const { return !loaders().empty() && limit().allows_any(); }

 private:
  const std::vector<LoaderSettings>& loaders() const;
  std::string prefix() const;  ///< "validation", "test", "predict"
  const TrainerSettings::Limit& limit() const;
  LoaderRole role() const;
  bool must_set_up() const;
  /// Ends the epoch for `self.log` and the hooks, once its batches have run.
  Program end_epoch(bool sanity);
  Program batches(const LoaderSettings& loader, int64_t batches_max, bool sanity);
  Program log_batch(bool sanity);
  /// Raises where a part of the loader's batches is asked for that is none of them.
  void check_limit(const LoaderSettings& loader, const OwnBatches& given) const;

  Training& training_;
  EvaluationKind kind_;
  LoggedResults results_;
  CountedDecisions decisions_;
  bool is_set_up_ = false;
  std::optional<int64_t> loaded_in_epoch_;             ///< none: before any
  std::map<std::pair<int64_t, bool>, int64_t> kinds_;  ///< by loader, of the sanity check or not
  std::map<int64_t, int64_t> seen_batches_;            ///< by loader; not those of the sanity check
};

/// `trainer.validate`, `test` or `predict` on their own.
Program evaluate(Training& training, EvaluationKind kind);

}  // namespace lockstep
