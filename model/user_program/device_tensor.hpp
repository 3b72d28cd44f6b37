#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "model/program/rank.hpp"

namespace lockstep {

/// Communication that was started with `async`, and whether its user has waited for it.
struct PendingWork {
  Ticket ticket{};
  StreamId stream{};
  bool waited = false;
  bool told = false;        ///< a use before the wait was reported: one missing wait, one finding
  SiteId site{};            ///< of the statement that started it
  std::string_view call{};  ///< its name, "all_reduce"
  bool is_message = false;
  bool holds_host = false;          ///< a barrier: whoever waits for it holds the host
  std::optional<int64_t> handle{};  ///< of Horovod: what the host waits for, in place of `ticket`
};

/// Until when an operation keeps the memory of a tensor that nothing names any more. Without an
/// entry c10d keeps it until the operation has finished.
struct Exposure {
  enum class Until : uint8_t {
    dropped,    ///< not at all: the allocator hands it out at once
    waited,     ///< until the work is waited for, or has finished
    work_dies,  ///< until the work is waited for, or nothing names it either
  };
  Until until = Until::dropped;
  std::shared_ptr<PendingWork> work;    ///< waited
  std::weak_ptr<PendingWork> handle{};  ///< work_dies
};

/// Which memory holds a tensor.
struct Location {
  DeviceId device{};
  int64_t other_gpu = -1;  ///< a GPU that is not the rank's, as CUDA numbers it; -1: `device`
};

/// A tensor of the scenario's own statements.
struct DeviceTensor {
  Slice slice;                              ///< without a buffer, only its size is known
  std::vector<int64_t> shape;               ///< its product is the slice's elements
  DeviceId device{};                        ///< host_device after `copy: {to: cpu}`
  int64_t other_gpu = -1;                   ///< a GPU that is not the rank's; -1: `device`
  Ticket ready{};                           ///< the operation that last wrote it
  StreamId ready_on{};                      ///< its stream
  std::shared_ptr<PendingWork> written_by;  ///< async work that writes it, or null
  std::shared_ptr<PendingWork> read_by;     ///< async work that reads it, or null
  std::map<StreamId, Ticket> uses{};        ///< the last operation on each stream
  bool arrives_unwaited = false;            ///< `ready` copies it to the host, non_blocking
  bool left_undefined = false;              ///< by a reduce of Gloo to another rank
  bool is_borrowed = false;                 ///< a strategy writes it too, on the compute stream
  uint8_t home_queue = queue::compute;      ///< the stream of its device that allocated it
  std::map<StreamId, Exposure> exposed{};   ///< of `uses`, those on other streams
  SiteId dropped_at{};                      ///< where its last name went

  Location location() const { return {device, other_gpu}; }
  /// The host wrote its value, and no operation since: `ready` was this then, and only orders.
  std::optional<Ticket> value_of_host{};

  bool has_value_of_host() const { return value_of_host && *value_of_host == ready && !written_by; }
  bool being_written() const { return written_by && !written_by->waited; }
  bool being_read() const { return read_by && !read_by->waited; }
};
using TensorPointer = std::shared_ptr<DeviceTensor>;

/// Elements of what each index of the first dimension names; without dimensions 1.
int64_t row_size(const std::vector<int64_t>& shape);

/// The tensors of one rank. A tensor's memory returns once nothing names it any more and the host
/// knows that its last operations have finished, as c10d keeps what its work still needs.
class TensorStore {
 public:
  explicit TensorStore(Rank& rank) : rank_(rank), dropped_(std::make_shared<Dropped>()) {}

  /// Zeros, in memory that always carries values.
  TensorPointer make(DType dtype, std::vector<int64_t> shape, DeviceId device = DeviceId{0},
                     uint8_t home_queue = queue::compute);
  /// Memory that somebody has allocated and gives away.
  TensorPointer adopt(const Slice& slice, std::vector<int64_t> shape);
  /// Only a size: nothing is allocated, values are unknown.
  TensorPointer make_sized(DType dtype, std::vector<int64_t> shape);
  /// Memory that belongs to somebody else, who outlives the tensor.
  TensorPointer borrow(const Slice& slice, std::vector<int64_t> shape, Ticket ready);

  /// The host knows that `ticket` and all before it on this stream, from its lane, have finished.
  void settled(StreamId on, Ticket ticket);
  /// Orders later work on `later` after the work that `earlier` held up to `ticket`.
  void ordered(StreamId later, StreamId earlier, Ticket ticket);
  /// Whether the host knows that a ticket has finished, by what it waited for and what that
  /// followed.
  bool known_finished(StreamId on, Ticket ticket) const;
  /// So many dropped tensors still wait for their operations.
  size_t waiting() const { return dropped_->tensors.size(); }
  /// The last uses of the tensor that was dropped first.
  std::map<StreamId, Ticket> oldest_uses() const { return dropped_->tensors.begin()->second.uses; }

  /// Adds what decides when tensors' memory returns.
  void remember(ProgramMemory& memory) const;
  static void remember(const DeviceTensor& tensor, ProgramMemory& memory);

  /// A statement begins: names that go from here on go there.
  void begins(SiteId site) { dropped_->site = site; }
  SiteId site() const { return dropped_->site; }
  /// The streams whose later work may get memory of dropped tensors that other streams still use.
  std::vector<StreamId> homes_of_exposed() const;
  /// Releases these tensors, as an allocator does that knows only the stream of its allocation.
  void release_exposed();

 private:
  struct Dropped {
    std::map<uint64_t, DeviceTensor> tensors;  ///< by when they were
    std::vector<uint64_t> unseen;              ///< of them, those that no other use is known of yet
    size_t exposed = 0;                        ///< of them, with such uses
    uint64_t ever = 0;
    SiteId site{};
  };
  TensorPointer kept(DeviceTensor tensor);
  bool is_exposed(const DeviceTensor& tensor) const;
  bool finished(StreamId on, Ticket ticket) const;
  /// A use that keeps a tensor's memory; null: there is none.
  const std::pair<const StreamId, Ticket>* unfinished_use(const DeviceTensor& tensor) const;
  /// Of these dropped tensors, ascending. The others wait for a use each.
  void release_finished(std::vector<uint64_t> tensors);
  void release(uint64_t tensor);

  Rank& rank_;
  std::shared_ptr<Dropped> dropped_;  ///< shared with tensors, which may outlive the store
  /// Tickets count for each lane of the host: a copy of the module has its own under dp.
  std::map<std::pair<LaneId, StreamId>, uint32_t> settled_;
  /// The ticket that each dropped tensor waits for.
  std::map<std::pair<LaneId, StreamId>, std::set<std::pair<uint32_t, uint64_t>>> awaited_;
  std::map<std::pair<StreamId, StreamId>, uint32_t> orders_;  ///< later, earlier: the last ticket
  std::map<StreamId, uint32_t> known_;  ///< settled_, and what follows from it by orders_
};

}  // namespace lockstep
