#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/strategy/local_model/optimizer.hpp"
#include "model/strategy/sharded/deepspeed/drive_options.hpp"
#include "model/strategy/sharded/deepspeed/sub_group.hpp"
#include "model/strategy/sharded/deepspeed/swap_buffers.hpp"

namespace lockstep {

/// Sub-groups of a rank's fp32 partition whose parameters, optimizer state and gradients lie on the
/// drive (deepspeed/runtime/swap_tensor/partitioned_optimizer_swapper.py and
/// pipelined_optimizer_swapper.py). Gradients are written as a backward makes them. A step reads
/// one sub-group after the other into buffers, where the host updates it, and writes it back.
class OptimizerSwapper {
 public:
  OptimizerSwapper(const DriveOptions& options, const OptimizerPlan& optimizer,
                   std::vector<SubGroup> groups);

  void allocate(Rank& rank);
  bool is_on_drive(size_t group) const { return groups_[group].on_drive; }
  /// Of a group on the drive: where its parameters are between steps.
  Slice master_of(size_t group) const;
  /// What it keeps there, rounded up as it is stored.
  Bytes bytes() const;

  /// A gradient in full precision, on the first device, at a position of the partition; takes the
  /// slice over, whose buffer it releases.
  void put_gradient(Rank& rank, const Slice& wide, int64_t position, SiteId site);

  /// A group while it is in host memory; empty state: the optimizer has none yet.
  struct Present {
    Slice master;
    Slice gradient;
    std::vector<Slice> state;
    /// Parts of `gradient` that nothing has been read into, by position in the group.
    std::vector<std::pair<int64_t, int64_t>> missing;
  };
  /// The host goes on when it is there.
  Present swap_in(Rank& rank, size_t group, SiteId site);
  /// `made`: state that the optimizer has just made, as slices of each group position; it is taken
  /// over. Empty: the group has state already, or needs none.
  struct MadeState {
    int64_t position = 0;  ///< in the group
    std::vector<Slice> tensors;
  };
  void swap_out(Rank& rank, size_t group, const std::vector<MadeState>& made, SiteId site);
  /// Another optimizer begins.
  void forget_state(Rank& rank);

 private:
  struct Group {
    SubGroup range;
    bool on_drive = false;
    Slice master;
    std::vector<Slice> state;
    std::map<int64_t, Slice> gradients;  ///< by position in the group
  };
  /// A gradient that stays on the device, whole or its end, until the step.
  struct Kept {
    size_t group = 0;
    int64_t position = 0;  ///< in the group
    Slice part;
    Slice whole;
  };
  struct Reading {
    size_t group = 0;
    std::vector<size_t> buffers;  ///< parameters, state, and last the gradient
    Ticket done;
  };
  struct Writing {
    std::vector<size_t> buffers;
    Ticket done;
  };
  struct Filling {
    size_t buffer = 0;
    int64_t filled = 0;
    Ticket last;
    std::vector<std::pair<Slice, Slice>> pieces;  ///< in the buffer, and on the drive
  };

  size_t group_at(int64_t position) const;
  int64_t stored(int64_t elements) const { return options_.aligned(elements, DType::fp32); }
  std::optional<size_t> next_on_drive(size_t group) const;
  size_t counters() const;
  size_t tensors_of(const Group& group) const;
  bool has_gradients(size_t group) const;
  void make_room(Rank& rank, int64_t elements, SiteId site);
  void write_filled(Rank& rank, SiteId site);
  void finish_gradients(Rank& rank, SiteId site);
  Reading read(Rank& rank, size_t group, SiteId site);
  Present present_of(Rank& rank, const Reading& reading, SiteId site);
  void bring_kept(Rank& rank, size_t group, const Slice& gradient, SiteId site);
  std::vector<std::pair<int64_t, int64_t>> missing_of(size_t group) const;
  Ticket write_made_state(Rank& rank, Group& group, const std::vector<MadeState>& made,
                          const std::vector<size_t>& free, SiteId site);
  std::vector<size_t> take_for_made_state(size_t tensors, SiteId site);
  bool is_pipelined() const { return options_.pipeline_read || options_.pipeline_write; }
  void finish(Rank& rank, const Writing& writing, SiteId site);

  DriveOptions options_;
  OptimizerPlan optimizer_;
  std::vector<Group> groups_;
  SwapBuffers buffers_;

  // Gradients of the backward under way.
  std::vector<size_t> to_fill_;
  std::optional<Filling> filling_;
  std::vector<size_t> being_written_;
  Ticket written_;
  std::vector<Kept> kept_;

  // The step under way.
  std::optional<Reading> ahead_;
  std::optional<Reading> present_;
  std::optional<Writing> behind_;
};

}  // namespace lockstep
