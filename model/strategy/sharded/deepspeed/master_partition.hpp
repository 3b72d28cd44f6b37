#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "model/strategy/layout/shard_layout.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/sharded/deepspeed/optimizer_swapper.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep {

/// For LS306: a parameter that no loss used was updated, by zeros or what its gradient was last.
KnownDifference updated_without_gradient(const std::string& parameter, int64_t steps, bool keeps);

/// For LS306: an optimizer that takes norms takes them of flat partitions.
void add_update_by_own_norms(const TrainingPlan& plan, std::vector<KnownDifference>& known);

/// DeepSpeedCPUAdam raises where parameters are on a GPU.
void check_device_of(const OptimizerPlan& optimizer, bool offloaded, SiteId site);

/// The part of the parameters that one rank updates, in full precision, with its gradients and its
/// optimizer state: the "fp32 partition" of DeepSpeed's optimizers. It lies on the first device, or
/// offloaded in the memory of the host, which then computes the update, or on the drive.
class MasterPartition {
 public:
  /// `layout` cuts `parameters`, indices into Replica::parameters(); the replica's own types are
  /// those in which gradients arrive and parameters are computed with.
  /// `keeps_gradients`: their memory stays between steps with what is in it, so that a parameter
  /// which gets none is updated by the one of the step before.
  MasterPartition(Replica& replica, std::vector<size_t> parameters, ShardLayout layout,
                  DeviceId device, bool keeps_gradients);

  /// Before allocate(), of a partition in host memory: it goes to the drive, in these groups.
  void use_drive(const DriveOptions& options, std::vector<SubGroup> groups);
  /// The optimizer is given one flat tensor for each of these.
  void divide_in(std::vector<SubGroup> groups) { groups_ = std::move(groups); }
  bool is_on_drive() const { return swapper_.has_value(); }
  /// What a checkpoint copies from there.
  Bytes bytes_on_drive() const { return swapper_ ? swapper_->bytes() : Bytes{}; }
  /// The rest, in memory.
  int64_t elements_in_memory() const { return master_.elements; }

  /// Allocates what outlives steps and writes first values: `index` in the group that shards.
  void allocate(Rank& rank, int32_t index, uint64_t variant);
  void release(Rank& rank);
  void forget_optimizer(Rank& rank);

  /// A part of the parameters, as the optimizer updates it.
  struct Piece {
    size_t parameter = 0;  ///< index into Replica::parameters()
    int64_t first_element = 0;
    int64_t position = 0;  ///< in the partition
    OptimizedTensor tensor;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  const ShardLayout& layout() const { return layout_; }
  const std::vector<size_t>& parameters() const { return parameters_; }
  int32_t index() const { return index_; }
  bool is_offloaded() const { return device_ == host_device; }
  std::vector<HeldParameter> held_parameters() const;

  /// Adds `parts` of reduced gradients, which lie on the first device, at `positions` of the
  /// partition; the first since the last step are taken as they are.
  void take_gradients(Rank& rank, const std::vector<Slice>& parts,
                      const std::vector<int64_t>& positions, SiteId site);
  /// What comes from here on is the last of the gradients before a step; else more are added.
  void note_boundary(bool at_boundary) { at_boundary_ = at_boundary; }
  bool has_gradients() const { return gradient_.buffer != no_buffer; }
  /// Since the last step.
  bool has_gradient(const Piece& piece) const { return taken_.contains(piece.position); }
  /// A backward has reduced its gradients, of which this rank need not have any.
  void note_reduction() { is_reduced_ = true; }

  struct Step {
    UpdateOptions options{};
    double loss_scale = 1;            ///< by which gradients are divided
    bool may_lack_gradients = false;  ///< else a step without a reduction before it raises
    bool gathers_norm = true;  ///< all ranks' squares are summed, also where nothing is clipped
    DType norm_dtype = DType::fp32;
    int32_t norm_calls = 1;  ///< one for each sub-group of parameters
    GroupId group = world_group;
    SiteId norm_site{};
    SiteId update_site{};
  };
  /// Starts the computation of the gradients' norm over all ranks; 0 where there are none.
  void begin_step(Rank& rank, const Step& step);
  /// Whether the norm is a number: false where a gradient has overflowed. The host waits for it.
  Task<bool> is_finite(Rank& rank);
  /// Clips, updates and ends the step.
  void update(Rank& rank, const Step& step);
  /// The same of a partition on the drive, group by group: each is read, updated, passed on as
  /// (values, its place in the partition), and written.
  using PassOn = std::function<void(const Slice& updated, int64_t begin)>;
  void update_on_drive(Rank& rank, const Step& step, const PassOn& pass_on);
  const Slice& values() const { return master_; }  ///< not on the drive: all
  /// Ends the step; its gradients are used up, with an update or without.
  void end_step(Rank& rank);
  /// What comes next is taken as it is, and not added.
  void drop_gradients(Rank& rank);
  /// Says which parameters were updated without a gradient.
  void add_differences(std::vector<KnownDifference>& known) const;
  /// Writes updated parameters in the replica's type into `partition`, which lies on `device`.
  /// Later work on the compute stream comes after it.
  void write_back(Rank& rank, const Slice& updated, const Slice& partition, DeviceId device,
                  SiteId site);

 private:
  StreamId stream_of_update() const { return stream(queue::compute, device_); }
  void write_first_values(Rank& rank, uint64_t variant);
  void fill_what_has_none(Rank& rank, const ComputeOptions& there);
  void cross_to_host(Rank& rank, const std::vector<Slice>& parts, const std::vector<Slice>& to,
                     bool adds, SiteId site);
  void allocate_on_drive(Rank& rank);
  void cross_to_drive(Rank& rank, const Slice& part, int64_t position, bool adds, SiteId site);
  void scale(Rank& rank, const Step& step, const Slice& gradient);
  void clip(Rank& rank, const Step& step, const Slice& gradient);
  struct InMemory;
  InMemory bring(Rank& rank, const Step& step, size_t group);
  void step_group(Rank& rank, const Step& step, const InMemory& here, size_t group);
  void put_away(Rank& rank, const Step& step, const InMemory& here, size_t group);
  std::vector<Piece*> pieces_of(size_t group);
  std::vector<OptimizedTensor*> given_to(const OptimizerPlan& optimizer);
  void make_state_of_padding(Rank& rank, const OptimizerPlan& optimizer,
                             const ComputeOptions& there);
  bool takes_norms_of_padding() const;

  Replica* replica_;
  std::vector<size_t> parameters_;
  ShardLayout layout_;
  DeviceId device_;
  int32_t index_ = 0;
  Slice master_;  ///< of what is not on the drive
  struct Home {
    int64_t begin = 0;  ///< in the partition
    Slice slice;
  };
  std::vector<Home> homes_;  ///< where values are between steps, in order
  std::vector<Piece> pieces_;
  std::vector<OptimizedTensor> flat_;  ///< by group, of an optimizer that does not go by elements
  OptimizedTensor padding_;       ///< its state alone counts, where the optimizer goes by pieces
  std::vector<SubGroup> groups_;  ///< none: one, of everything
  std::optional<OptimizerSwapper> swapper_;
  bool at_boundary_ = true;
  Slice gradient_;  ///< in the type of the replica, or offloaded in full precision
  bool keeps_gradients_;
  bool is_reduced_ = false;                     ///< since the last step
  std::map<size_t, int64_t> without_gradient_;  ///< steps, by parameter
  std::set<int64_t> taken_;  ///< positions that have a gradient since the last step
  Slice wide_gradient_;      ///< of the step under way
  Slice squared_norm_;
  Ticket norm_ready_{};
};

}  // namespace lockstep
