#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "backend/gloo/fleet.hpp"

namespace lockstep::backend {

/// Where the ranks of one world find each other, and the number of their current connection.
struct MeetingFolder {
  std::string path;     ///< a folder that all ranks see, used by no earlier connection
  uint64_t number = 0;  ///< of the connection: a different number means that they connect again
};

/// The connections of one rank process that takes part in run after run: kept by world size as long
/// as all ranks agree that they are good, because connecting costs more than most runs.
class Connections {
 public:
  /// The context of this rank among so many; null in a world of one. Throws WorldUnavailable when
  /// another rank does not come within `limit`.
  std::shared_ptr<gloo::Context> connected(int32_t rank, int32_t world_size,
                                           const MeetingFolder& meeting,
                                           std::chrono::milliseconds limit);
  void drop(int32_t world_size) { kept_.erase(world_size); }

 private:
  struct Kept {
    uint64_t number = 0;
    int32_t rank = 0;
    std::shared_ptr<gloo::Context> context;
  };
  std::shared_ptr<gloo::transport::Device> device_;
  std::map<int32_t, Kept> kept_;
};

}  // namespace lockstep::backend
