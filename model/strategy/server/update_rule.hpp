#pragma once

#include <cstdint>
#include <vector>

#include "model/strategy/server/server_options.hpp"
#include "model/strategy/staleness.hpp"

namespace lockstep {

/// What a server does with the messages of its workers, without their data: which gradients make an
/// update, who gets the weights, and how old the weights of each gradient were.
class UpdateRule {
 public:
  UpdateRule(const ServerOptions& options, int32_t workers);

  /// What follows from one message.
  struct Decision {
    bool keeps = false;               ///< its gradient is added to those of the next update
    int64_t averaged = 0;             ///< gradients of the update that is made now; 0: none is made
    std::vector<int32_t> answered{};  ///< workers that get the weights, after that update
  };
  Decision pulled(int32_t worker);
  Decision pushed(int32_t worker);
  Decision ended(int32_t worker);

  /// Workers whose next message the server waits for. Empty: it has nothing to do any more.
  std::vector<int32_t> awaited() const;
  bool all_have_ended() const { return active_ == 0; }
  /// Gradients that wait for more of them.
  int64_t gathered() const { return static_cast<int64_t>(gathered_.size()); }
  int64_t updates() const { return updates_; }
  const Staleness& staleness() const { return staleness_; }

  /// What it decides by, relative to what it has counted so far.
  void remember(std::vector<int64_t>& numbers) const;
  /// What has been counted until a moment.
  struct Counted {
    int64_t updates = 0;
    int64_t clock = 0;  ///< gradients of each worker that the others wait for
    Staleness staleness{};
  };
  Counted counted() const { return {updates_, slowest_clock(), staleness_}; }
  /// Counts `times` what was counted between two moments at which it would have decided alike.
  void count_again(const Counted& begin, const Counted& end, int64_t times);

 private:
  struct Worker {
    int64_t pulled = 0;  ///< updates that its weights have seen
    int64_t clock = 0;   ///< gradients that it has pushed
    bool waits = false;  ///< for an answer
    bool has_ended = false;
  };
  int64_t needed() const;
  int64_t slowest_clock() const;
  void update(Decision& decision);
  void answer_permitted(Decision& decision);
  void answer(int32_t worker, Decision& decision);
  bool steps_at_once() const {
    return options_.mode == ServerMode::async || options_.mode == ServerMode::ssp;
  }
  bool counts(const Worker& worker) const { return !worker.has_ended || !options_.join; }

  ServerOptions options_;
  std::vector<Worker> workers_;
  std::vector<int32_t> gathered_;  ///< whose gradients they are
  std::vector<int32_t> held_;      ///< ssp: who waits although the gradient was applied
  int64_t active_ = 0;
  int64_t updates_ = 0;
  Staleness staleness_;
};

}  // namespace lockstep
