#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// "sends", "receives 2", "group 3": the queues that Gloo's calls wait in; empty: any other queue.
std::string gloo_queue_name(uint8_t queue);

}  // namespace lockstep
