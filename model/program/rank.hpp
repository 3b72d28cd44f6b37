#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/program/color_rule.hpp"
#include "model/program/port.hpp"

namespace lockstep {

/// The tickets that must finish on the device before an operation starts: `{a, b}`, or a span that
/// outlives the call. Trivially copyable, so that it may stand inside a co_await expression.
class After {
 public:
  constexpr After() = default;
  template <class... Tickets>
    requires(sizeof...(Tickets) > 0 && sizeof...(Tickets) <= 4 &&
             (std::is_same_v<Tickets, Ticket> && ...))
  constexpr After(Tickets... tickets) : here_{tickets...}, count_(sizeof...(Tickets)) {}
  After(std::span<const Ticket> tickets)
      : there_(tickets.data()), count_(static_cast<uint32_t>(tickets.size())) {}
  After(const std::vector<Ticket>& tickets) : After(std::span<const Ticket>(tickets)) {}

  std::span<const Ticket> tickets() const {
    return {there_ != nullptr ? there_ : here_.data(), count_};
  }

 private:
  std::array<Ticket, 4> here_{};
  const Ticket* there_ = nullptr;
  uint32_t count_ = 0;
};

struct CommunicationOptions {
  StreamId on = communication_stream;
  After after{};
  SiteId site{};
};
struct ComputeOptions {
  StreamId on = compute_stream;
  After after{};
  SiteId site{};
};

/// Device work by name: operands in the order that kernel.hpp gives.
struct KernelCall {
  Kernel kernel = Kernel::timed;
  int32_t layer = 0;
  int64_t work = 0;  ///< picoseconds (timed) or FLOPs
  Bytes memory_traffic{};
  /// The type that it computes in; nothing: that of its first result.
  std::optional<DType> computes_in{};
  std::span<const Slice> reads{};
  std::span<const Slice> writes{};
  std::span<const double> scalars{};
};

/// Orders the host after tickets. Throws RankFailure when one of them did not end well.
class Settle {
 public:
  Settle(Port& port, Ticket ticket) : port_(&port), ticket_(ticket) {}
  bool await_ready() const {
    port_->wait_begins({&ticket_, 1}, Until::all);
    return port_->settled(ticket_);
  }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) const {
    Lane& lane = *handle.promise().lane;
    port_->resume_when_settled({&ticket_, 1}, Until::all, lane);
    lane.wait();
  }
  Status await_resume() const;

 private:
  Port* port_;
  Ticket ticket_;
};

class SettleAll {
 public:
  SettleAll(Port& port, std::span<const Ticket> tickets) : port_(&port), tickets_(tickets) {}
  bool await_ready() const;
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) const {
    Lane& lane = *handle.promise().lane;
    port_->resume_when_settled(tickets_, Until::all, lane);
    lane.wait();
  }
  void await_resume() const;

 private:
  Port* port_;
  std::span<const Ticket> tickets_;
};

/// Lets a world in which hosts run ahead come to the time of this one.
class CatchUp {
 public:
  explicit CatchUp(Port& port) : port_(&port) {}
  bool await_ready() const { return !port_->runs_ahead(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) const {
    Lane& lane = *handle.promise().lane;
    port_->resume_when_settled({}, Until::all, lane);
    lane.wait();
  }
  void await_resume() const {}

 private:
  Port* port_;
};

/// The typed interface of one rank over its Port, used by strategies. Shapes are in elements,
/// `group` names a communicator as this rank numbers them, ranks are global.
class Rank {
 public:
  explicit Rank(Port& port);

  const Place& place() const { return port_->place(); }
  int32_t id() const { return static_cast<int32_t>(place().rank.value); }
  int32_t world_size() const { return place().world_size; }
  Port& port() const { return *port_; }

  // Memory. The slice covers the whole buffer.
  // `home_queue`: of the device, whose later work may use the memory as soon as it is released.
  Slice allocate(Purpose purpose, DType dtype, int64_t elements, DeviceId device = DeviceId{0},
                 uint8_t home_queue = queue::compute);
  void release(const Slice& slice, SiteId site = {}) { port_->release(slice.buffer, site); }
  void write(const Slice& to, const Values& values) { port_->write(to, values); }
  Values read(const Slice& from) { return port_->read(from); }
  SharedValues read_shared(const Slice& from) { return port_->read_shared(from); }
  std::shared_ptr<const void> result_of(const PureCall& call) { return port_->result_of(call); }

  // Device work.
  Ticket compute(const KernelCall& call, const ComputeOptions& options = {});
  Ticket compute(Time duration, const ComputeOptions& options = {});
  Ticket copy(const Slice& from, const Slice& to, const CommunicationOptions& options);
  Ticket event(const ComputeOptions& options = {});
  /// Work of the lane's own thread; later submissions come after it.
  Ticket host(Time duration, SiteId site = {});

  // Collectives. Every member must call them in the same order.
  Ticket all_reduce(GroupId group, const Slice& data, Reduction reduction,
                    const CommunicationOptions& options = {});
  Ticket reduce(GroupId group, const Slice& data, Reduction reduction, int32_t root,
                const CommunicationOptions& options = {});
  Ticket broadcast(GroupId group, const Slice& data, int32_t root,
                   const CommunicationOptions& options = {});
  Ticket all_gather(GroupId group, const Slice& part, const Slice& whole,
                    const CommunicationOptions& options = {});
  Ticket gather(GroupId group, const Slice& part, const Slice& whole, int32_t root,
                const CommunicationOptions& options = {});
  Ticket scatter(GroupId group, const Slice& whole, const Slice& part, int32_t root,
                 const CommunicationOptions& options = {});
  /// `splits`: elements for each member; empty = equal parts.
  Ticket reduce_scatter(GroupId group, const Slice& whole, const Slice& part, Reduction reduction,
                        std::span<const int64_t> splits = {},
                        const CommunicationOptions& options = {});
  /// `splits`: elements sent to each member, then elements got from each; empty = equal parts.
  Ticket all_to_all(GroupId group, const Slice& send, const Slice& receive,
                    std::span<const int64_t> splits = {}, const CommunicationOptions& options = {});
  Ticket barrier(GroupId group, const CommunicationOptions& options = {});

  // Point to point. `source` may be any_rank; Status::source then says who it was.
  Ticket send(GroupId group, const Slice& data, int32_t destination, int32_t tag = 0,
              const CommunicationOptions& options = {});
  Ticket receive(GroupId group, const Slice& data, int32_t source, int32_t tag = 0,
                 const CommunicationOptions& options = {});

  /// Makes a group of global ranks out of `parent`: a collective of all members of the parent. The
  /// id is usable once the ticket has settled.
  struct NewGroup {
    GroupId group;
    Ticket ready;
  };
  NewGroup new_group(GroupId parent, std::span<const int64_t> members,
                     const CommunicationOptions& options = {});
  /// As ncclCommSplit: one group a colour.
  NewGroup split_group(GroupId parent, int32_t color, const CommunicationOptions& options = {});
  NewGroup split_group(GroupId parent, const ColorRule& rule,
                       const CommunicationOptions& options = {});

  // Host order.
  Settle settle(Ticket ticket) { return {*port_, ticket}; }
  /// The span must outlive the co_await.
  SettleAll settle_all(std::span<const Ticket> tickets) { return {*port_, tickets}; }
  /// Where hosts run ahead of the world: until it has come to the time of this one, and all that
  /// happens by then has happened. What the program does next it does at the same time as without.
  Program catch_up();
  /// The index of a ticket that has settled; which one, when several have, is a choice.
  Task<uint32_t> settle_any(std::vector<Ticket> tickets, SiteId site = {});

  Lane& start_lane(Program program) { return port_->start_lane(std::move(program)); }
  Ticket promise() { return port_->promise(); }
  void fulfil(Ticket promise) { port_->fulfil(promise); }
  uint32_t choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) {
    return port_->choose(site, kind, alternatives, local);
  }
  ProcessSignal reached(const Position& position) { return port_->reached(position); }
  PeriodsLeftOut begins_period(const PeriodStart& start) { return port_->begins_period(start); }
  void follow_periods(PeriodFollower* follower) { port_->follow_periods(follower); }
  void ends_period_alike(int32_t level) { port_->ends_period_alike(level); }

 private:
  friend class GroupedCall;
  /// Skips decorators that do not handle a single operation of this kind.
  Ticket submit(const Op& op) { return entrances_[static_cast<size_t>(op.kind)]->submit({&op, 1}); }
  Ticket communicate(Op op, const Slice* read, const Slice* write, std::span<const int64_t> splits,
                     const CommunicationOptions& options);

  Port* port_;
  std::array<Port*, op_kind_count> entrances_{};
  uint32_t next_group_ = 1;
};

/// ncclGroupStart .. ncclGroupEnd: collects operations and submits them as one, without order among
/// them and with one ticket.
class GroupedCall {
 public:
  explicit GroupedCall(Rank& rank, const CommunicationOptions& options = {})
      : rank_(&rank), options_(options) {}
  GroupedCall& send(GroupId group, const Slice& data, int32_t destination, int32_t tag = 0);
  GroupedCall& receive(GroupId group, const Slice& data, int32_t source, int32_t tag = 0);
  /// Any communication; `read` and `write` as the kind says, splits copied.
  GroupedCall& add(const Op& op, const Slice& read, const Slice& write,
                   std::span<const int64_t> splits = {});
  Ticket submit();

 private:
  struct Part {
    Op op;
    Slice read;
    Slice write;
    std::vector<int64_t> splits;
    OpLists lists;
  };
  Rank* rank_;
  CommunicationOptions options_;
  std::vector<Part> parts_;
};

}  // namespace lockstep
