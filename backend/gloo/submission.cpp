#include "backend/gloo/submission.hpp"

namespace lockstep::backend {

Part::Part(const Op& op, const Communicator* communicator, int64_t call) : op_(op), call_(call) {
  if (communicator != nullptr) {
    key_ = communicator->key;
    members_ = communicator->members;
  }
}

}  // namespace lockstep::backend
