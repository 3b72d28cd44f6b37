#pragma once

#include "model/trainer/loop/trainer_collectives.hpp"
#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

/// What Lightning does on a SIGTERM that comes to one rank
/// (trainer/connectors/signal_connector.py).
class Termination {
 public:
  /// All outlive it.
  Termination(Rank& rank, const TrainingProgram& program, TrainerCollectives& collectives);

  /// A stage begins: no signal has come to it.
  void begin_stage(const TrainerSites& sites);
  /// Lightning's handlers are registered between these.
  void begin_handling() { handles_ = true; }
  void end_handling() { handles_ = false; }

  /// Runs the handler of a signal that has come. Throws RankLost where there is none.
  Program handle();
  /// From 2.5.3 on: rank 0 broadcasts whether it received SIGTERM; then all leave.
  Program share();
  /// Leaves by SIGTERMException where this rank has received one and there is more to do.
  void leave_if_come(bool is_done) const;

 private:
  bool broadcasts() const;

  Rank& rank_;
  const TrainingProgram& program_;
  TrainerCollectives& collectives_;
  const TrainerSites* sites_;  ///< of the stage that runs
  bool handles_ = false;
  bool has_come_ = false;
};

}  // namespace lockstep
