#pragma once

#include <future>
#include <utility>

#include "rehearsal/launch/interruption.hpp"

namespace lockstep::cli {

/// Calls `work` on a thread of its own, before it is known whether its result is needed. It owns
/// what it uses. The future waits for its end, also where nobody asks for the result.
template <class Work>
auto run_ahead(Work work) {
  return std::async(std::launch::async, [work = std::move(work)] {
    leave_interruptions_to_others();
    return work();
  });
}

}  // namespace lockstep::cli
