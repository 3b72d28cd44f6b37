#pragma once

#include <memory>

#include "backend/gloo/rank_state.hpp"

namespace lockstep::backend {

/// One communication while it runs, in three steps, so that the parts of a grouped call cannot wait
/// for each other: first all parts post, then all receive, then all see their sends taken.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Posts sends and receives; never waits.
  virtual void post() = 0;
  /// Waits for what comes, and stores the result; a receive says in `status` what came from whom.
  virtual void receive(Status& status) = 0;
  /// Whether `receive` needs every member before it can take all that comes.
  virtual bool hears_from_all() const { return false; }
  /// Waits until peers have taken what was sent.
  virtual void deliver() = 0;
};

/// `part` and `rank` outlive the exchange.
std::unique_ptr<Exchange> make_send(const Part& part, RankState& rank);
std::unique_ptr<Exchange> make_receive(const Part& part, RankState& rank);
std::unique_ptr<Exchange> make_collective(const Part& part, RankState& rank);

}  // namespace lockstep::backend
