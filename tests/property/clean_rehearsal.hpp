#pragma once

#include <string>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::test {

/// The one case of a text, run and judged in this world, inside of rc::check: it runs, and nothing
/// is found. What is wrong is logged.
cli::Rehearsal clean_rehearsal(const std::string& text, cli::World world);

}  // namespace lockstep::test
