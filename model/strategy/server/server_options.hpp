#pragma once

#include <cstdint>
#include <vector>

#include "model/core/place.hpp"

namespace lockstep {

/// When a server updates its weights, and when a worker gets them back.
enum class ServerMode : uint8_t {
  sync,     ///< one update of the mean of all workers' gradients
  batched,  ///< one of the mean of the first K that have come
  async,    ///< one for each gradient
  ssp,      ///< the same; a worker that is too far ahead of the slowest waits for its answer
};

/// Arguments of ParameterServerStrategy.
struct ServerOptions {
  ServerMode mode = ServerMode::sync;
  int32_t servers = 1;
  int64_t batch = 0;          ///< of batched: K
  int64_t max_staleness = 0;  ///< of ssp
  bool drop_late = false;     ///< of batched: a gradient of older weights is thrown away
  bool join = true;           ///< a worker whose training has ended is waited for no more
};

/// Who is what. Workers come first, because Lightning logs and saves on rank 0.
struct ServerRoles {
  int32_t workers = 1;
  int32_t servers = 1;

  static ServerRoles of(int32_t world_size, int32_t servers) {
    return {world_size - servers, servers};
  }
  bool is_server(int32_t rank) const { return rank >= workers; }
  int32_t server_rank(int32_t server) const { return workers + server; }
  std::vector<int64_t> worker_ranks() const {
    std::vector<int64_t> ranks;
    for (int32_t worker = 0; worker < workers; ++worker) {
      ranks.push_back(worker);
    }
    return ranks;
  }
};

}  // namespace lockstep
