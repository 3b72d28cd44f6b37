// lockstep-rank: LibTorch on the CPU, messages by Gloo.
#include <fstream>

#include "backend/gloo/world.hpp"
#include "backend/libtorch/kernels.hpp"
#include "cli/rank_program/rank_main.hpp"
#include "cli/rank_program/serve.hpp"

namespace lockstep::cli {

namespace {

// As the kernel names it; "" where it does not.
std::string processor_name() {
  std::ifstream information("/proc/cpuinfo");
  const std::string key = "model name";
  for (std::string line; std::getline(information, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

RunResult run_over_gloo(backend::Meeting& meeting, const RankOrder& order) {
  backend::GlooOptions gloo;
  gloo.deadline = order.deadline;
  gloo.kernels = backend::make_libtorch_kernels;
  backend::Seat seat;
  seat.rank = order.place.rank;
  seat.context = meeting.connect();
  seat.wait_for_all = [&meeting](const backend::Leftovers&) {
    meeting.wait_for_all();
    return backend::Agreement{};
  };
  seat.follower = &order.follower;
  seat.when_lost = order.when_lost;
  return backend::run_rank(order.options, gloo, seat, order.program);
}

}  // namespace

}  // namespace lockstep::cli

int main(int argc, char** argv) {
  using namespace lockstep::cli;
  const RankWorld world{"lockstep-rank", [] { return std::string("Gloo"); },
                        processor_name,  run_over_gloo,
                        false,           serve_cases};
  return main_of_rank(argc, argv, world);
}
