#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// "sends", "receives 2", "group 3": of the queues that Gloo's calls stand on; empty: another.
std::string gloo_queue_name(uint8_t queue);

}  // namespace lockstep
