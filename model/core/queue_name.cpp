#include "model/core/queue_name.hpp"

#include "model/core/ids.hpp"

namespace lockstep {

std::string gloo_queue_name(uint8_t queue) {
  const auto numbered = [queue](const char* name, uint8_t first) {
    return queue == first ? std::string(name)
                          : std::string(name) + " " + std::to_string(queue - first + 1);
  };
  if (queue::of_sends(queue)) {
    return numbered("sends", queue::first_send);
  }
  if (queue::of_receives(queue)) {
    return numbered("receives", queue::first_receive);
  }
  return queue::of_group(queue) ? numbered("group", queue::first_group) : "";
}

}  // namespace lockstep
