#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/exchange/negotiation/coordinator.hpp"
#include "model/strategy/exchange/negotiation/response_cache.hpp"
#include "model/strategy/exchange/negotiation/response_runner.hpp"
#include "model/strategy/exchange/negotiation/submission.hpp"

namespace lockstep {

struct NegotiationOptions {
  FusionOptions fusion;
  Time cycle_time{int64_t{1'000'000'000}};  ///< 1 ms
  int64_t cache_capacity = 1024;
  std::vector<int64_t> process_set{};  ///< ascending; empty: all ranks
};

/// Horovod's engine on one rank: its host hands tensors over by name, and a background thread
/// agrees with those of the other ranks on what all have handed over, and carries that out
/// (horovod/common/operations.cc, controller.cc).
///
/// A real background thread goes round every cycle, whether anything is there or not. This one goes
/// round while something is, and waits in between: for the host, within a call of the negotiation
/// for the other ranks, and, when no rank has anything new, for a word of the first that has. So a
/// run in which a tensor never becomes ready everywhere ends with all of them waiting.
///
/// A process set agrees by itself, with names and a cache of its own: each has a Negotiator. A real
/// rank has one thread, which serves all sets that the rank is in, one after the other.
class Negotiator : public DescribedLane, public std::enable_shared_from_this<Negotiator> {
 public:
  explicit Negotiator(const NegotiationOptions& options)
      : options_(options),
        cache_(static_cast<size_t>(options.cache_capacity)),
        runner_(options.fusion) {}

  // Of the host.
  bool is_running() const { return is_running_; }
  /// A collective of all ranks, also of those outside of the process set.
  Program make_groups(Rank& rank);
  /// Of the ranks of the set. Makes the groups where make_groups() has not.
  Program start(Rank& rank);
  /// Gives the handle. `name`: for messages.
  int64_t submit(Rank& rank, const TensorRequest& request, const Slice& data, const Slice& whole,
                 Ticket ready, std::string name = "");
  /// The same of the next handle: a tensor without a name of its own.
  int64_t submit_unnamed(Rank& rank, TensorRequest request, const Slice& data, const Slice& whole,
                         Ticket ready);
  /// Until the tensor may be used. Throws ProgramException where the ranks did not agree. Gives
  /// what an all_gather has put together.
  Task<Slice> wait(Rank& rank, int64_t handle, SiteId site);
  /// Ends the background thread, and waits for its end. From then on other ranks that hand
  /// something over raise.
  Program stop(Rank& rank);
  /// The same of a host that has raised: its process ends, and nobody waits. Never throws.
  void abandon(Rank& rank) noexcept;

  std::vector<Bytes> take_reduced_bytes() { return runner_.take_reduced_bytes(); }
  /// How many handles it has given.
  int64_t handles() const { return queue_.added(); }

  // Of the world.
  std::optional<LaneMemory> memory() const override;

 private:
  /// Which wait the background thread is in. `elsewhere`: one of those that are not described.
  enum class Stands : uint8_t {
    elsewhere,
    idle,
    taking,
    agreeing,
    carrying_out,
    waiting_for_word,
    giving_word
  };
  struct Agreement {
    std::vector<size_t> hits;  ///< positions of the cache that are ready on all ranks
    bool has_uncached = false;
    bool has_new = false;
    bool closes = false;        ///< some rank has ended
    bool has_outdated = false;  ///< in the cache
  };

  /// What another rank has sent cannot be what it meant.
  struct DamagedMessage {};

  Program run(Rank& rank);
  Program run_cycle(Rank& rank);
  Program take_submissions(Rank& rank);
  Program take(Rank& rank);
  Task<Agreement> agree(Rank& rank);
  Program forget_outdated(Rank& rank);
  Program coordinate(Rank& rank, std::vector<TensorResponse>& responses);
  Task<std::vector<int64_t>> gather_lengths(Rank& rank, int64_t own);
  Program share_responses(Rank& rank, std::vector<TensorResponse>& responses);
  void expect_fitting(const TensorResponse& response) const;
  void fail_pending(Rank& rank);
  Program carry_out(Rank& rank, const std::vector<TensorResponse>& responses);
  Program wait_for_word(Rank& rank);
  std::vector<int64_t> uncached() const;
  std::vector<size_t> outdated() const;
  CommunicationOptions control(std::string_view step) const;
  /// What the threads send each other, which always carries values.
  static Slice control_numbers(Rank& rank, DType dtype, int64_t count);

  NegotiationOptions options_;
  SubmissionQueue queue_;
  ResponseCache cache_;
  ResponseRunner runner_;
  std::unique_ptr<Coordinator> coordinator_;  ///< on rank 0
  std::vector<int32_t> members_;              ///< those that agree, ascending
  GroupId control_;                           ///< for what the threads say to each other
  GroupId data_;
  bool has_groups_ = false;
  bool is_open_ = false;  ///< the queue
  bool is_running_ = false;
  Ticket ended_;

  // Of the background thread.
  Stands stands_ = Stands::elsewhere;
  int64_t taken_ = 0;             ///< numbers below are taken from the queue
  int64_t take_until_ = 0;        ///< so many it is taking
  std::vector<int64_t> pending_;  ///< taken and not carried out
  std::set<int64_t> told_;        ///< of those: rank 0 knows
  bool took_something_ = false;   ///< in this cycle
  bool has_joined_ = false;
  bool closes_ = false;     ///< this rank's host has ended
  bool shut_down_ = false;  ///< some rank's has
  bool is_damaged_ = false;
  Slice bits_;
};

}  // namespace lockstep
