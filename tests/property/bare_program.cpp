#include "tests/property/bare_program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::test {

namespace {

// Positions of the steps in which the flaw may be planted.
std::vector<size_t> candidates(const BareProgram& program) {
  const Flaw flaw = program.defect.flaw;
  std::vector<size_t> positions;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Act act = program.steps[i].act;
    const bool rooted =
        act == Act::reduce || act == Act::broadcast || act == Act::gather || act == Act::scatter;
    const bool sized = is_collective(act) && act < Act::barrier;
    const bool fits = flaw == Flaw::other_root        ? rooted
                      : flaw == Flaw::other_size      ? sized
                      : flaw == Flaw::other_reduction ? act == Act::all_reduce || act == Act::reduce
                      : flaw == Flaw::released_early  ? act == Act::all_reduce
                      // What follows a group that was never made would be a bug of the program.
                      : flaw == Flaw::missing || flaw == Flaw::local_branch
                          ? is_collective(act) && act <= Act::barrier
                          : is_collective(act);
    if (fits) {
      positions.push_back(i);
    }
  }
  return positions;
}

bool concerns_all_ranks(Flaw flaw) {
  return flaw == Flaw::local_branch || flaw == Flaw::released_early;
}

void swap_with_next_collective(std::vector<OwnStep>& steps, size_t at) {
  for (size_t next = at + 1; next < steps.size(); ++next) {
    const bool makes_group =
        steps[next].step.act == Act::split_group || steps[next].step.act == Act::reverse_group;
    if (makes_group) {
      return;
    }
    if (is_collective(steps[next].step.act)) {
      std::swap(steps[at], steps[next]);
      return;
    }
  }
}

}  // namespace

Flaw planted(const BareProgram& program) {
  const bool needs_peer =
      program.defect.flaw != Flaw::raised && program.defect.flaw != Flaw::released_early;
  const bool possible = program.ranks > 1 || !needs_peer;
  const bool anywhere =
      program.defect.flaw == Flaw::uneven ? !program.steps.empty() : !candidates(program).empty();
  return possible && anywhere ? program.defect.flaw : Flaw::none;
}

std::vector<OwnStep> steps_of(const BareProgram& program, int32_t rank) {
  std::vector<OwnStep> own;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    own.push_back({program.steps[i], site_id(fmt::format("step {}", i)), static_cast<int32_t>(i),
                   Flaw::none});
  }
  const Flaw flaw = planted(program);
  if (flaw == Flaw::none ||
      (rank != program.defect.rank % program.ranks && !concerns_all_ranks(flaw))) {
    return own;
  }
  if (flaw == Flaw::uneven) {
    const std::vector<OwnStep> once = own;
    own.insert(own.end(), once.begin(), once.end());
    return own;
  }
  const std::vector<size_t> positions = candidates(program);
  const size_t at = positions[static_cast<size_t>(program.defect.at) % positions.size()];
  if (flaw == Flaw::missing) {
    own.erase(own.begin() + static_cast<std::ptrdiff_t>(at));
  } else if (flaw == Flaw::repeated) {
    own.insert(own.begin() + static_cast<std::ptrdiff_t>(at), OwnStep(own[at]));
  } else if (flaw == Flaw::swapped) {
    swap_with_next_collective(own, at);
  } else {
    own[at].flaw = flaw;
  }
  return own;
}

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << fmt::format("{}(buffer {}, other {}, group {}, number {}, {})",
                            act_names[static_cast<size_t>(step.act)], step.buffer, step.other,
                            step.group, step.number, name_of(step.reduction));
}

std::ostream& operator<<(std::ostream& out, const BareProgram& program) {
  out << fmt::format("{} ranks, {}{}; defect {} on rank {} at {}\n", program.ranks,
                     name_of(program.dtype), program.eager ? ", eager" : "",
                     flaw_names[static_cast<size_t>(planted(program))], program.defect.rank,
                     program.defect.at);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    out << fmt::format("  step {}: ", i) << program.steps[i] << '\n';
  }
  return out;
}

}  // namespace lockstep::test
