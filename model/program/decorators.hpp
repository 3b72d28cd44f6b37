#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "model/program/journal.hpp"
#include "model/program/port.hpp"

namespace lockstep {

/// Forwards everything. A decorator is one class over this that changes what it is about.
/// Order, outermost first: recording, checking, fault injection, replay, the world.
class PortDecorator : public Port {
 public:
  explicit PortDecorator(Port& inner) : inner_(inner) {}

  const Place& place() const override { return inner_.place(); }
  LaneId lane() const override { return inner_.lane(); }
  BufferId allocate(const BufferSpec& spec) override { return inner_.allocate(spec); }
  void release(BufferId buffer, SiteId site) override { inner_.release(buffer, site); }
  void write(const Slice& to, const Values& values) override { inner_.write(to, values); }
  Values read(const Slice& from) override { return inner_.read(from); }
  SharedValues read_shared(const Slice& from) override { return inner_.read_shared(from); }
  std::shared_ptr<const void> result_of(const PureCall& call) override {
    return inner_.result_of(call);
  }
  Ticket submit(std::span<const Op> ops) override { return inner_.submit(ops); }
  void wait_begins(std::span<const Ticket> tickets, Until until) override {
    inner_.wait_begins(tickets, until);
  }
  bool settled(Ticket ticket) const override { return inner_.settled(ticket); }
  void resume_when_settled(std::span<const Ticket> tickets, Until until, Lane& lane) override {
    inner_.resume_when_settled(tickets, until, lane);
  }
  Status status(Ticket ticket) const override { return inner_.status(ticket); }
  bool runs_ahead() const override { return inner_.runs_ahead(); }
  Lane& start_lane(Program program) override { return inner_.start_lane(std::move(program)); }
  Ticket promise() override { return inner_.promise(); }
  void fulfil(Ticket promise) override { inner_.fulfil(promise); }
  uint32_t choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) override {
    return inner_.choose(site, kind, alternatives, local);
  }
  ProcessSignal reached(const Position& position) override { return inner_.reached(position); }
  PeriodsLeftOut begins_period(const PeriodStart& start) override {
    return inner_.begins_period(start);
  }
  void follow_periods(PeriodFollower* follower) override { inner_.follow_periods(follower); }
  void ends_period_alike(int32_t level) override { inner_.ends_period_alike(level); }

 protected:
  Port& inner_;
};

/// Writes the journal of one rank.
class RecordingPort final : public PortDecorator {
 public:
  RecordingPort(Port& inner, Journal& journal);

  BufferId allocate(const BufferSpec& spec) override;
  void release(BufferId buffer, SiteId site) override;
  Values read(const Slice& from) override;
  SharedValues read_shared(const Slice& from) override;
  Ticket submit(std::span<const Op> ops) override;
  void wait_begins(std::span<const Ticket> tickets, Until until) override;
  Status status(Ticket ticket) const override;
  Ticket promise() override;
  void fulfil(Ticket promise) override;
  uint32_t choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) override;

 private:
  void append(const Row& row) const;
  void append_read(const Slice& from) const;

  Journal& journal_;
  int32_t rank_;
  bool lists_;
  mutable std::map<uint64_t, SiteId> any_source_receives_;  ///< by lane and sequence
};

/// The properties of a group's k-th call that must agree on all members.
struct Fingerprint {
  OpKind kind = OpKind::event;
  DType dtype = DType::uint8;
  Reduction reduction = Reduction::sum;
  int32_t root = 0;
  int64_t bytes = 0;
  int64_t splits = 0;  ///< a hash
  bool operator==(const Fingerprint&) const = default;
};
Fingerprint fingerprint_of(const Op& op);

/// Two ranks that put different operations at the same place of one group.
struct Mismatch {
  GroupId group{};
  int64_t call = 0;  ///< from 0
  RankId first{};
  RankId second{};
  Fingerprint first_call;
  Fingerprint second_call;
};

/// Compares fingerprints per group and call. Used by all ranks of a run; a world with threads wraps
/// it in a lock.
class FingerprintBoard {
 public:
  /// A call that all `ranks` of the run have posted is forgotten.
  explicit FingerprintBoard(int32_t ranks) : ranks_(ranks) {}
  virtual ~FingerprintBoard() = default;
  /// Calls of a group that some rank has not posted yet.
  int64_t open_calls(GroupId group) const;
  /// Each rank posts its calls of a group in order, from 0.
  virtual std::optional<Mismatch> post(RankId rank, GroupId group, int64_t call,
                                       const Fingerprint& fingerprint);

 private:
  struct Post {
    Fingerprint fingerprint;
    RankId rank;
    int32_t posted = 0;  ///< ranks
  };
  /// The calls of a group from `first` on, in a power-of-two ring.
  struct Calls {
    int64_t first = 0;
    int64_t end = 0;
    std::vector<Post> ring = std::vector<Post>(8);
    Post& at(int64_t call) { return ring[static_cast<size_t>(call) & (ring.size() - 1)]; }
  };
  static void add(Calls& calls, const Post& post);

  int32_t ranks_;
  Calls world_;  ///< what nearly all posts are about
  std::map<GroupId, Calls> others_;
};

/// Holds each collective of the world group against those of the other ranks before it is
/// submitted, and throws ProgramException at the first difference. Groups made by the program are
/// numbered by each rank separately; only the world is compared.
class CheckingPort final : public PortDecorator {
 public:
  CheckingPort(Port& inner, FingerprintBoard& board)
      : PortDecorator(inner), board_(board), rank_(inner.place().rank) {}
  Ticket submit(std::span<const Op> ops) override;
  Port& entrance_for(OpKind kind) override;

 private:
  void check(const Op& op);

  FingerprintBoard& board_;
  RankId rank_;
  int64_t calls_ = 0;
};

/// Makes the choices that a recorded rank made: sources of any-source receives, settle_any,
/// branches. Where the record ends, the world makes its own choice.
class ReplayPort final : public PortDecorator {
 public:
  ReplayPort(Port& inner, const Journal& recorded);
  Ticket submit(std::span<const Op> ops) override;
  Port& entrance_for(OpKind kind) override;
  Ticket promise() override;
  /// A receive whose source the replay named says who it was, as one without a source does.
  Status status(Ticket ticket) const override;
  uint32_t choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) override;

 private:
  struct LaneRecord {
    std::map<uint32_t, int32_t> sources;  ///< by the receive's sequence
    std::vector<Row> choices;
    size_t next_choice = 0;
    uint32_t last_sequence = 0;
    std::map<uint32_t, Status> named;  ///< receives that were given their source, by sequence
  };
  Ticket submit_named(std::span<const Op> ops);
  LaneRecord& record_of(LaneId lane);

  std::vector<LaneRecord> lanes_;
  bool any_source_ = false;  ///< the record holds a choice of source: sequences must be followed
};

}  // namespace lockstep
