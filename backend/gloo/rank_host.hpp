#pragma once

#include <map>
#include <memory>

#include "backend/gloo/rank_state.hpp"
#include "backend/gloo/stream_worker.hpp"
#include "backend/rank/host_lanes.hpp"

namespace lockstep::backend {

/// The host of one rank: its port, and the loop that runs its lanes, all on one thread.
class RankHost final : public Port {
 public:
  /// `journal` and `board` may be null; both outlive the host.
  RankHost(RankState& state, Journal* journal, FingerprintBoard* board);
  ~RankHost() override;

  /// Runs the program to its end. The rank's thread calls it, once.
  void run(const ProgramOfRank& program_of_rank);
  /// Lets the workers end when their queues are empty, or at once after an abort; joins them.
  void stop_workers();

  const RankEnd& end() const { return lanes_.end(); }
  int64_t operations() const { return operations_; }
  const RankStack& stack() const { return stack_; }

  const Place& place() const override { return place_; }
  LaneId lane() const override { return lanes_.current(); }
  BufferId allocate(const BufferSpec& spec) override;
  void release(BufferId buffer, SiteId site) override;
  void write(const Slice& to, const Values& values) override;
  Values read(const Slice& from) override;
  Ticket submit(std::span<const Op> ops) override;
  void wait_begins(std::span<const Ticket> tickets, Until until) override;
  bool settled(Ticket ticket) const override;
  void resume_when_settled(std::span<const Ticket> tickets, Until until, Lane& lane) override;
  Status status(Ticket ticket) const override;
  Lane& start_lane(Program program) override;
  Ticket promise() override;
  void fulfil(Ticket promise) override;
  uint32_t choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) override;

 private:
  Lane& add_lane(Program program);
  Lane* next_lane();

  Ticket host_work(const Op& op);
  void wait_for_room(std::unique_lock<std::mutex>& lock);
  void add_part(Submission& submission, const Op& op);
  void enqueue(std::unique_ptr<Submission> submission, StreamId on);

  RankState& state_;
  Place place_;
  RankStack stack_;
  HostLanes lanes_;
  std::map<StreamId, std::unique_ptr<StreamWorker>> workers_;
  int64_t operations_ = 0;
};

}  // namespace lockstep::backend
