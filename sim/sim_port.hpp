#pragma once

#include "model/program/port.hpp"
#include "sim/engine.hpp"

namespace lockstep::sim {

/// The simulated world as one rank sees it.
class SimPort final : public Port, public HostTime {
 public:
  SimPort(Engine& engine, RankState& rank) : engine_(engine), rank_(rank) {}

  const Place& place() const override { return rank_.place; }
  LaneId lane() const override {
    return rank_.running == nullptr ? LaneId{} : rank_.running->lane.id();
  }
  BufferId allocate(const BufferSpec& spec) override { return rank_.buffers->allocate(spec); }
  void release(BufferId buffer, SiteId) override {
    if (!rank_.sealed) {
      rank_.buffers->release(buffer);
    }
  }
  void write(const Slice& to, const Values& values) override {
    ensure(values.size() == to.elements && values.dtype() == to.dtype, "a write fits its slice");
    rank_.buffers->store(to, values);
  }
  Values read(const Slice& from) override { return rank_.buffers->load(from); }
  SharedValues read_shared(const Slice& from) override { return rank_.buffers->share(from); }
  std::shared_ptr<const void> result_of(const PureCall& call) override {
    return engine_.shared_results.of(call);
  }
  Ticket submit(std::span<const Op> ops) override { return engine_.submit(rank_, ops); }
  void wait_begins(std::span<const Ticket> tickets, Until until) override {
    engine_.wait_begins(rank_, tickets, until);
  }
  bool settled(Ticket ticket) const override { return engine_.settled(rank_, ticket); }
  void resume_when_settled(std::span<const Ticket> tickets, Until until, Lane& lane) override {
    engine_.suspend(rank_, tickets, until, *rank_.lanes[lane.id().value]);
  }
  Status status(Ticket ticket) const override { return engine_.status(rank_, ticket); }
  bool runs_ahead() const override { return true; }
  Lane& start_lane(Program program) override {
    return engine_.start_lane(rank_, std::move(program));
  }
  Ticket promise() override { return engine_.promise(rank_); }
  void fulfil(Ticket promise) override { engine_.fulfil(rank_, promise); }
  uint32_t choose(SiteId, ChoiceKind kind, uint32_t, uint32_t local) override {
    if (kind == ChoiceKind::step) {
      engine_.note_step(rank_);
    }
    return local;
  }
  ProcessSignal reached(const Position& position) override {
    engine_.reached(rank_, position);
    return ProcessSignal::none;
  }

  PeriodsLeftOut begins_period(const PeriodStart& start) override {
    return engine_.begins_period(rank_, start);
  }
  void follow_periods(PeriodFollower* follower) override {
    engine_.follow_periods(rank_, follower);
  }
  void ends_period_alike(int32_t level) override { Periods::end_alike(rank_, level); }

  /// As it is shown: with what has been left out.
  Time now() const override {
    return rank_.running == nullptr ? Time{} : rank_.running->host + rank_.skipped;
  }

 private:
  Engine& engine_;
  RankState& rank_;
};

}  // namespace lockstep::sim
