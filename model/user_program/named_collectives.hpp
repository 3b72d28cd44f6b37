#pragma once

#include <map>
#include <memory>
#include <string>

#include "model/strategy/exchange/negotiation/negotiator.hpp"
#include "model/user_program/device_tensor.hpp"

namespace lockstep {

/// What the statements of one rank have handed over to Horovod, where a program communicates
/// through it (hvd.allreduce, hvd.synchronize, ..) in place of torch.distributed.
class NamedCollectives {
 public:
  explicit NamedCollectives(Rank& rank) : rank_(rank) {}
  /// An exception of the program ends the process, which shuts Horovod down on all ranks.
  ~NamedCollectives();
  NamedCollectives(const NamedCollectives&) = delete;
  NamedCollectives& operator=(const NamedCollectives&) = delete;

  /// hvd.init and hvd.shutdown. A world of one rank has nobody to agree with.
  Program open(const NegotiationOptions& options);
  Program close();

  struct InFlight {
    TensorPointer data;    ///< read, or reduced in place
    TensorPointer result;  ///< null: known once all parts are
    std::string name{};    ///< of a request that has one, for messages
  };
  /// Whether a tensor of this name and kind is on its way.
  bool is_under_way(const TensorName& name) const;
  /// Gives the handle.
  int64_t submit(const TensorRequest& request, InFlight sent, Ticket ready);
  struct Arrived {
    InFlight sent;
    Slice whole;  ///< of all_gather
  };
  /// hvd.synchronize. Throws ProgramException where the ranks do not agree.
  Task<Arrived> wait(int64_t handle, SiteId site);

 private:
  Rank& rank_;
  std::shared_ptr<Negotiator> negotiator_;
  std::map<int64_t, InFlight> in_flight_;  ///< by handle
  std::map<TensorName, int64_t> named_;    ///< handles of those with a name
};

}  // namespace lockstep
