#include "model/scenario/fault_spec.hpp"

namespace lockstep {

std::string_view name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::straggler: return "straggler";
    case FaultKind::slow_data: return "slow_data";
    case FaultKind::slow_link: return "slow_link";
    case FaultKind::lost_rank: return "lost_rank";
    case FaultKind::lost_node: return "lost_node";
    case FaultKind::lost_message: return "lost_message";
    case FaultKind::corrupted_value: return "corrupted_value";
    case FaultKind::exception: return "exception";
    case FaultKind::out_of_memory: return "out_of_memory";
    case FaultKind::signal: return "signal";
  }
  return "?";
}

}  // namespace lockstep
