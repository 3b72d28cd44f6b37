#include "backend/gloo/submission.hpp"

namespace lockstep::backend {

Part::Part(const Op& op, const Communicator* communicator, int64_t call)
    : op_(op),
      call_(call),
      reads_(op.list().reads.begin(), op.list().reads.end()),
      writes_(op.list().writes.begin(), op.list().writes.end()),
      splits_(op.list().splits.begin(), op.list().splits.end()),
      scalars_(op.list().scalars.begin(), op.list().scalars.end()),
      lists_{{}, reads_, writes_, splits_, scalars_} {
  op_.lists = &lists_;
  if (communicator != nullptr) {
    key_ = communicator->key;
    members_ = communicator->members;
  }
}

}  // namespace lockstep::backend
