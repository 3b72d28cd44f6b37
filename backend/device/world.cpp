#include "backend/device/world.hpp"

#include <algorithm>

#include "backend/device/device_host.hpp"

namespace lockstep::backend {

namespace {

// Time for operations still in flight when every lane has ended.
constexpr std::chrono::milliseconds drain_limit{500};

}  // namespace

RunResult run_rank(const RunOptions& options, std::chrono::milliseconds deadline,
                   const DeviceSeat& seat, const ProgramOfRank& program_of_rank) {
  FingerprintBoard fingerprints(options.world_size);
  RunResult result;
  result.ends.resize(static_cast<size_t>(options.world_size));
  result.memory.resize(static_cast<size_t>(options.world_size));
  result.times_measured = true;
  if (options.record) {
    JournalOptions in_memory = options.journal;
    in_memory.store = nullptr;  // spilled journals are the simulator's
    in_memory.follower = seat.follower;
    result.journal = std::make_unique<Journal>(options.world_size, in_memory);
  }
  DeviceHost host(seat, options, deadline, result.journal.get(), &fingerprints);
  host.run(program_of_rank);
  result.total_time = host.now();
  host.drain(std::min(drain_limit, deadline));
  if (seat.when_lost && host.was_lost()) {
    seat.when_lost();
  }
  seat.wait_for_all();
  seat.device.abort_links();
  host.tell(result);
  return result;
}

}  // namespace lockstep::backend
