#pragma once

#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/rehearsal.hpp"
#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// What a short run of a variant gave.
struct Probe {
  std::optional<Results> results;  ///< none: it did not come to its end
  bool out_of_memory = false;      ///< that is why
  std::string failure;             ///< else why: "raises: .."; "" where the time was up
};

/// A variant of a training, and what is said of it.
struct Variant {
  std::string text;
  Scenario scenario;
};

/// It came to its end, and leaves room for the CUDA context and NCCL.
bool fits(const Probe& probe);

/// Of the device that needs most.
Bytes peak_of(const Results& results);

inline PlainValue plain(int64_t number) { return {number, {}}; }

/// Makes variants of a training that take a few steps, and runs them. All variants together may
/// take so many operations; never is the clock asked.
class Prober {
 public:
  static constexpr int64_t operations_max = 2'000'000;
  static constexpr int64_t batch_size_max = 65'536;
  /// Operations that are simulated, and ranks, each of which has to be prepared.
  static int64_t cost_of(const OneRun& run);

  /// Both outlive this.
  Prober(const Rehearsal& rehearsal, const RehearseRequest& request);

  const Rehearsal& rehearsal() const { return rehearsal_; }
  const LoaderSpec* loader() const { return loader_; }
  int64_t accumulated() const;
  int64_t steps() const { return steps_; }
  /// Of each variant from here on. What was run before is forgotten.
  void take_steps(int64_t steps);

  /// A few steps of training and nothing else. Only what is shortened alike is compared.
  Scenario shortened() const;
  /// With as many samples as its steps take.
  Scenario with_batch_size(int64_t batch_size) const;
  /// What all changes are made to, and compared with.
  Scenario base() const;
  bool may_change_batch() const;
  /// with_batch_size() of the scenario's own may be run.
  bool may_try_own_batch() const {
    return may_change_batch() && may_list(loader_->batch_size->value);
  }
  /// Each rank's sampler lists the whole data set: not too many indices.
  bool may_list(int64_t batch_size) const;
  int64_t largest_listed() const;  ///< the largest batch size that may be tried

  enum class Asked : uint8_t { times, memory };
  Probe probe(const Scenario& variant, Asked asked = Asked::times);
  /// One after the other, as long as they are affordable, `take` gets what each gave. On several
  /// threads some are run before it is their turn.
  void probe_each(const std::vector<Variant>& variants,
                  const std::function<void(const Variant&, const Probe&)>& take);
  /// Of with_batch_size() and of base(); each is run once. Of sizes other than the scenario's own
  /// and its double only memory counts.
  const Probe& probe_batch_size(int64_t batch_size);
  /// This one will probably be asked for: it is begun where a thread is free.
  void foresee_batch_size(int64_t batch_size);
  const Probe& probe_base();
  /// One more variant may be run, where all may take so many operations.
  bool affordable(int64_t most = operations_max) const;
  /// "takes 363 k operations ..": why no more variants were tried.
  std::string why_not_affordable() const;
  /// The time is up.
  bool stopped() const { return stopped_; }

 private:
  static constexpr int64_t fewest_steps = 3;

  /// What counts for all of them counts when a probe is asked for, whenever it was run.
  struct Tried {
    Probe probe;
    int64_t cost = 0;
    bool stopped = false;
  };
  Tried try_one(const Scenario& variant, Asked asked = Asked::times) const;
  Asked asked_of(int64_t batch_size) const;
  Probe count(Tried tried);
  bool may_run_ahead() const;

  int64_t samples_for(int64_t batch_size) const;
  const Rehearsal& rehearsal_;
  const RehearseRequest& request_;
  const LoaderSpec* loader_;
  int64_t steps_ = fewest_steps;
  int64_t spent_ = 0;
  int64_t longest_ = 0;  ///< operations of one variant
  bool stopped_ = false;
  std::map<int64_t, Probe> of_batch_sizes_;
  std::map<int64_t, std::future<Tried>> foreseen_sizes_;
  std::optional<Probe> of_base_;  ///< where its batch is none that may be tried
};

}  // namespace lockstep::cli
