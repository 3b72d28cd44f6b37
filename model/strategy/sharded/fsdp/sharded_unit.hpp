#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "model/strategy/layout/shard_layout.hpp"
#include "model/strategy/sharded/fsdp/whole_parameters.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep {

/// The numeric types of one unit.
struct ShardTypes {
  DType stored = DType::fp32;    ///< of shards, their gradients and optimizer state
  DType gathered = DType::fp32;  ///< of gathered parameters and the gradients that backward makes
  DType reduced = DType::fp32;   ///< of gradients while they are summed over the ranks
  bool widens_sums() const { return reduced != stored; }
};

/// How gradients become means: divided by `before`, summed, divided by `after`. Powers of two on
/// the way keep half precision from overflow (torch/distributed/algorithms/_comm_hooks).
struct GradientDivision {
  double before = 1;
  double after = 1;
  bool averages = false;  ///< the collective itself divides (Reduction::avg)
  /// As FSDP1 and FSDP2 in 16 bits choose it: `before` doubles while it divides the ranks and is
  /// smaller than their quotient.
  static GradientDivision over(int64_t ranks);
  /// FSDP2's: fp32 and bf16 are averaged by the collective, fp16 is divided before and after it.
  static GradientDivision of_type(DType reduced, int64_t ranks);
};

/// Parameters that are gathered, freed and reduced together. Each rank stores its shard of them;
/// the whole ones, which the layers of a replica read, exist from gather() to free().
class ShardedUnit {
 public:
  /// What a collective of the unit goes over, and what it is called.
  struct Exchange {
    GroupId group = world_group;
    SiteId site{};
  };

  /// `parameters`: indices into Replica::parameters(), in definition order, with their layout.
  ShardedUnit(Replica& replica, std::vector<size_t> parameters, ShardLayout layout,
              ShardTypes types);
  /// Before allocate(): the shard, its gradients and its optimizer state lie in host memory, where
  /// the update runs too. `accumulates`: else a new gradient replaces the one that is there, as in
  /// FSDP1.
  void offload(bool accumulates) {
    offloading_.device = host_device;
    offloading_.accumulates = accumulates;
  }
  /// Whether a gradient was lost in that way.
  bool has_replaced_gradients() const { return offloading_.has_replaced_gradients; }
  /// Where its collectives run: the communicator of its group may be another than that of messages.
  void communicate_on(StreamId stream) { collectives_on_ = stream; }
  /// Gradients become those of the shard on this stream, and no other work waits there: their
  /// memory in between is that stream's. Offloaded ones stay on the device until
  /// forget_offloaded().
  void settle_on(StreamId stream) { settles_on_ = stream; }
  /// The stream on which the shard is updated.
  StreamId stream_of_update() const { return stream(queue::compute, offloading_.device); }

  /// Allocates this rank's shard and, with values, fills it: `index` in its group, first values
  /// drawn by `variant`.
  void allocate(Rank& rank, int32_t index, uint64_t variant);

  bool is_gathered() const { return gathered_; }
  bool is_sharded() const { return layout_.ranks() > 1; }
  /// Gathered in another type than it is stored in.
  bool is_cast() const { return types_.stored != types_.gathered; }
  /// What is stored is what layers read: there is nothing to gather, nor to cast.
  bool is_whole() const {
    return !is_sharded() && types_.stored == types_.gathered && offloading_.device != host_device;
  }
  /// Gives the parameters memory and brings the shards of all ranks into it. The compute stream
  /// waits only after await_gathered().
  void gather(Rank& rank, const Exchange& exchange, Ticket after);
  /// Later work on the compute stream sees the gathered parameters.
  void await_gathered(Rank& rank, SiteId site);
  void free(Rank& rank);
  /// What is gathered stays, and modules have views of the shard in place of it, until the next
  /// await_gathered() or show_whole(). For flat layouts.
  void show_shard();
  bool shows_shard() const { return shows_shard_; }
  void show_whole();
  /// Frees what is gathered but a part of it: the place `index` among `ranks` that bring these
  /// parts together when it is gathered next. Not for flat layouts.
  void free_but_part(Rank& rank, int32_t ranks, int32_t index, SiteId site);
  /// Frees such a part, so that the next gather() begins with the shards.
  void drop_part(Rank& rank);
  /// Whether gather() brings such parts together, over their group, and not the shards.
  bool keeps_larger_part() const { return larger_part_.has_value(); }
  /// Only parameters that have a gradient are reduced: FSDP2. Else the others count as zeros.
  void reduce_only_given() { only_given_ = true; }

  /// The whole parameters in the type of the shards, beside those that are gathered: for a
  /// state_dict. The caller frees them.
  struct Copy {
    Slice whole;
    Ticket done{};
  };
  Copy gather_copy(Rank& rank, const Exchange& exchange, Ticket after);

  /// Whether a backward has left a gradient of the whole parameters.
  bool has_whole_gradients() const { return parameters_.has_gradients(); }
  /// A backward that reduces nothing has ended: its gradients wait in the type in which they will
  /// be reduced, if that is another, and those of later backwards are added there (FSDP2,
  /// to_accumulated_grad_if_needed).
  void keep_whole_gradients(Rank& rank, SiteId site);
  /// Sums the gradients of the whole parameters over the ranks and frees them; each rank gets those
  /// of its shard, which are there after settle_gradients(). `across`: a second group, whose ranks
  /// hold the same shards (hybrid).
  void reduce(Rank& rank, const Exchange& exchange, const Exchange* across,
              const GradientDivision& division, Ticket done);
  /// The two halves of reduce() where a strategy reduces several units at once. The first writes
  /// the gradients of the whole parameters, times `factor`, as one shard for each rank behind the
  /// other, and frees them; the second takes the sum of this rank's shard, times `factor`.
  void pack_for_reduction(Rank& rank, const Slice& packed, double factor, Ticket done, SiteId site);
  void take_reduced(Rank& rank, const Slice& sum, double factor, Ticket done, SiteId site);
  DType reduced_dtype() const { return types_.reduced; }
  /// Puts what was reduced into the gradients of the shard, on the stream of settle_on().
  void settle_gradients(Rank& rank, const GradientDivision& division, SiteId site);
  /// Behind that; none: nothing was settled since.
  Ticket take_settled() { return std::exchange(settled_, Ticket{}); }
  /// The compute stream comes after it.
  void forget_offloaded(Rank& rank);
  void zero_gradients(Rank& rank, size_t optimizer, bool set_to_none, SiteId site);
  /// Reduced ones, which are no None; also on a rank without a part of them.
  bool holds_gradients() const { return gradient_.buffer != no_buffer; }

  /// Pieces of the shard, as an optimizer updates them.
  struct Piece {
    size_t parameter = 0;  ///< index into Replica::parameters()
    int64_t first_element = 0;
    int64_t position = 0;  ///< in the shard
    OptimizedTensor tensor;
  };
  std::vector<Piece>& pieces() { return pieces_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// The whole shard, padding included, where an optimizer is given the flat parameter itself.
  OptimizedTensor& flat_tensor();
  /// Where the optimizer is given the flat parameter, and updates its pieces alike: what it keeps
  /// for the padding as well.
  void make_state_of_padding(Rank& rank, const OptimizerPlan& optimizer,
                             const ComputeOptions& there);
  /// Of all that the optimizer is given.
  Bytes state_bytes() const;
  /// Whether the parameter has a reduced gradient, also where this rank has no element of it.
  bool has_gradient(size_t parameter) const;
  const std::vector<size_t>& parameters() const { return parameters_.indices(); }
  const WholeParameters& whole_parameters() const { return parameters_; }
  const ShardLayout& layout() const { return layout_; }
  void forget_optimizer(Rank& rank);

 private:
  /// A part of the gathered parameters that outlives a forward.
  struct LargerPart {
    ShardLayout layout;
    Slice memory;
    Ticket made{};
  };

  /// Where the shard is, and its gradients on their way there.
  struct Offloading {
    DeviceId device{0};
    bool accumulates = true;
    bool holds_gradients = false;  ///< of a backward since they were set to None or 0
    bool has_replaced_gradients = false;
    Slice leaving{};  ///< a gradient that is copied to host memory
  };
  /// Gradients that are being reduced.
  struct UnderWay {
    std::vector<bool> takes{};            ///< by parameter: its gradient is among them
    std::optional<ShardLayout> layout{};  ///< if it is not that of the unit
    Slice packed{};  ///< the input, where something else than the compute stream settles the sum
    Slice sum{};     ///< of the shard, as the reduction leaves it
    Ticket done{};
  };
  /// Where an optimizer is given the flat parameter.
  struct FlatParameter {
    OptimizedTensor whole{};
    OptimizedTensor padding{};  ///< its state alone counts
  };

  void write_first_values(Rank& rank, uint64_t variant);
  const ShardLayout& gathered_layout() const {
    return larger_part_ ? larger_part_->layout : layout_;
  }
  /// The shard as it travels, in the type of gathered parameters on the first device. Memory of its
  /// own where that is not the shard itself.
  struct Travelling {
    Slice slice;
    Ticket ready{};
    bool is_copy = false;
  };
  /// The stream of the memory of a shard's copies: without other ranks layers read these.
  uint8_t home_of_shard() const { return is_sharded() ? collectives_on_.queue() : queue::compute; }
  Travelling travelling_shard(Rank& rank, SiteId site, Ticket after);
  Travelling arriving_shard(Rank& rank, SiteId site);
  std::vector<size_t> choose_reduced();
  void gather_into_whole(Rank& rank, const Exchange& exchange, const Slice& part, Ticket after,
                         Ticket ready);
  /// Whether what was reduced stays behind settle_gradients(): as the gradient, or on its way to
  /// host memory.
  bool keeps_reduced() const {
    return offloading_.device == host_device ? settles_on_ != compute_stream
                                             : gradient_.buffer == no_buffer;
  }
  /// The stream of the memory of something reduced, which stays or is only read by what settles it.
  uint8_t home_of_reduced(bool stays) const { return stays ? queue::compute : settles_on_.queue(); }
  Ticket add_gradient(Rank& rank, const Slice& reduced, const ComputeOptions& there);
  void move_to_host(Rank& rank, Slice reduced, SiteId site);
  void bind_flat();
  void copy_out(Rank& rank, SiteId site);
  /// Parts of `gathered` that are the parameter, in its order.
  static std::vector<Slice> parts_of(const ShardLayout& layout, const Slice& gathered,
                                     size_t tensor);
  void pack_gradients(Rank& rank, const ShardLayout& layout, const std::vector<size_t>& tensors,
                      const Slice& packed, double factor, Ticket done, SiteId site);
  Slice in_whole_layout(Rank& rank, const ShardLayout& given, const Slice& reduced, SiteId site);
  void fill_padding(Rank& rank, const Slice& packed, const std::vector<Slice>& written,
                    SiteId site);
  void adopt_gradient(Rank& rank, SiteId site);

  WholeParameters parameters_;
  ShardLayout layout_;
  ShardTypes types_;
  Offloading offloading_{};
  StreamId collectives_on_ = communication_stream;
  StreamId settles_on_ = compute_stream;
  int32_t index_ = 0;
  Slice shard_;
  std::vector<Piece> pieces_;

  bool only_given_ = false;
  std::optional<LargerPart> larger_part_;
  bool gathered_ = false;
  bool shows_shard_ = false;
  Slice whole_;           ///< flat: the memory of all parameters; else what the all_gather fills
  Ticket gather_done_{};  ///< none once the compute stream waits for it
  SiteId gather_site_{};
  UnderWay under_way_{};
  Ticket settled_{};
  Slice gradient_;           ///< of the shard
  std::vector<bool> given_;  ///< by parameter: has_gradient()
  FlatParameter flat_{};
};

}  // namespace lockstep
