// lockstep-rank: LibTorch on the CPU, messages by Gloo.
#include <malloc.h>

#include <limits>

#include "backend/gloo/world.hpp"
#include "backend/libtorch/kernels.hpp"
#include "backend/libtorch/tensor_memory.hpp"
#include "backend/process/other_ranks.hpp"
#include "backend/rank_program/rank_main.hpp"
#include "backend/rank_program/serve.hpp"
#include "rehearsal/launch/processor.hpp"

namespace lockstep::cli {

namespace {

RunResult run_over_gloo(backend::Meeting& meeting, const RankOrder& order,
                        backend::TensorMemory& tensors) {
  backend::GlooOptions gloo;
  gloo.deadline = order.deadline;
  gloo.kernels = backend::make_libtorch_kernels;
  backend::Seat seat;
  seat.rank = order.place.rank;
  seat.context = meeting.connect();
  seat.wait_for_all = [&meeting, &seat](const backend::Leftovers&) {
    meeting.wait_for_all(seat.elsewhere);
    return backend::Agreement{};
  };
  seat.follower = &order.follower;
  seat.when_lost = order.when_lost;
  backend::OtherRanks others(meeting.board("gets on"), order.place.rank, order.options.world_size);
  if (order.options.world_size > 1) {
    seat.elsewhere = &others;
  }
  tensors.take_peak();
  RunResult result = backend::run_rank(order.options, gloo, seat, order.program);
  result.tensor_peak.resize(static_cast<size_t>(order.options.world_size));
  result.tensor_peak[static_cast<size_t>(order.place.rank)] = tensors.take_peak();
  return result;
}

// A training step allocates what the step before gave back. One arena that gives nothing back to
// the system, as the caching allocators of frameworks do, spares it the page faults: glibc would
// return large blocks at once, and each thread's own arena whenever its end is free.
void keep_freed_memory() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace

}  // namespace lockstep::cli

int main(int argc, char** argv) {
  using namespace lockstep::cli;
  keep_freed_memory();
  lockstep::backend::TensorMemory& tensors = lockstep::backend::count_tensor_memory();
  const RankWorld world{
      "lockstep-rank",
      [] { return std::string("Gloo"); },
      processor_name,
      [&tensors](lockstep::backend::Meeting& meeting, const RankOrder& order) {
        return run_over_gloo(meeting, order, tensors);
      },
      false,
      [&tensors](const lockstep::RankOrigin& origin) { serve_cases(origin, tensors); }};
  main_of_rank(argc, argv, world);
}
