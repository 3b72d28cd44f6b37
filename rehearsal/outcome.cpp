#include "rehearsal/outcome.hpp"

namespace lockstep::cli {

Outcome outcome_of(const Rehearsal& rehearsal) {
  if (rehearsal.refused()) {
    return Outcome::refused;
  }
  if (rehearsal.invalid()) {
    return Outcome::invalid;
  }
  if (rehearsal.unsupported()) {
    return Outcome::unsupported;
  }
  if (!rehearsal.undecided.empty() || !rehearsal.ran()) {
    return Outcome::undecided;
  }
  if (ran_out_of_memory(rehearsal.run)) {
    return Outcome::out_of_memory;
  }
  if (rehearsal.hung || rehearsal.run.result.hung) {
    return Outcome::hangs;
  }
  return rehearsal.why_no_prediction().empty() ? Outcome::predicted : Outcome::raises;
}

}  // namespace lockstep::cli
