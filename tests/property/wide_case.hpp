#pragma once

#include <rapidcheck.h>

#include <iosfwd>
#include <string>

namespace lockstep::test {

/// A scenario with many ranks as a value, up to whether every rank is to be run.
struct WideCase {
  std::string text;
};

std::string text_of(const WideCase& wide, bool all_ranks, bool all_steps);
std::ostream& operator<<(std::ostream& out, const WideCase& wide);

/// Trainings under every strategy whose ranks may do the same, and programs without a trainer.
rc::Gen<WideCase> wide_cases();

/// With faults, and enough nodes for ranks to do the same beside those that are struck.
rc::Gen<WideCase> wide_faulty_cases();

/// Trainings under Bagua, Horovod and ddp2, and those that average models, alone.
rc::Gen<WideCase> wide_exchange_cases();

}  // namespace lockstep::test
