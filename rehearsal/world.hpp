#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::cli {

enum class World : uint8_t {
  simulated,
  threads,    ///< one thread per rank in this process, over Gloo
  processes,  ///< one rank program per rank, over LibTorch and Gloo or NCCL
};
/// Whether time passes there as it does, so that nothing can be said of predicted times.
constexpr bool is_real(World world) { return world != World::simulated; }
constexpr std::string_view description_of(World world) {
  switch (world) {
    case World::simulated: return "simulated";
    case World::threads: return "one thread per rank over Gloo";
    case World::processes: return "one process per rank, over LibTorch";
  }
  return "";
}

}  // namespace lockstep::cli
