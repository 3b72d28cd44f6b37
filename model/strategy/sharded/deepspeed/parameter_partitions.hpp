#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/strategy/layout/shard_layout.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_options.hpp"
#include "model/strategy/sharded/deepspeed/master_partition.hpp"
#include "model/strategy/sharded/deepspeed/parameter_swapper.hpp"

namespace lockstep {

/// The parameters of a replica, each of which is cut by itself in parts of ceil(n / ranks)
/// elements; a rank stores its parts, and whole ones exist from gather() to free()
/// (deepspeed/runtime/zero/partition_parameters.py).
class ParameterPartitions {
 public:
  /// Parts lie on `device`: the first, or the host, from which what is large goes to the drive.
  ParameterPartitions(Replica& replica, int32_t ranks, DeviceId device,
                      const DeepSpeedOptions& options);

  void allocate(Rank& rank, uint64_t variant);
  DeviceId device() const { return device_; }
  int32_t ranks() const { return ranks_; }
  int32_t index() const { return index_; }  ///< this rank's, once allocated
  size_t count() const { return parameters_.size(); }
  int64_t elements_of(size_t parameter) const { return parameters_[parameter].elements; }
  int64_t part_elements_of(size_t parameter) const {
    return (parameters_[parameter].elements + ranks_ - 1) / ranks_;
  }
  /// Trainable parameters in definition order, and what is updated together.
  const std::vector<size_t>& trainable() const { return trainable_; }
  const std::vector<SubGroup>& sub_groups() const { return groups_; }
  const Slice& part_of(size_t parameter) const { return parameters_[parameter].part; }

  enum class State : uint8_t { away, under_way, here };
  State state_of(size_t parameter) const { return parameters_[parameter].state; }
  /// Before the first gather (ZeRO++, hpZ): whole parameters that are freed leave a second part
  /// behind, from which ranks of a group gather among themselves until the next step.
  Program use_second_parts(Rank& rank, int32_t ranks, SiteId site);
  /// Parameters change: gathers are of all ranks again.
  void drop_second_parts(Rank& rank);
  /// Starts one all_gather of these, which are away; of those with second parts another one.
  void gather(Rank& rank, const std::vector<size_t>& parameters, SiteId site);
  /// Later work on the compute stream sees the whole parameter, and those gathered with it.
  void wait(Rank& rank, size_t parameter, SiteId site);
  void free(Rank& rank, size_t parameter);
  /// The part is on the drive alone.
  bool is_away_on_drive(size_t parameter) const { return swapper_ && swapper_->is_away(parameter); }
  bool uses_drive() const { return swapper_.has_value(); }
  ParameterSwapper& swapper() { return *swapper_; }
  /// The buffer of a part from the drive, for one that stays gathered.
  void give_buffer(size_t parameter);
  /// Values [begin, ..) of the trainable parameters' parts, as `master` has updated them.
  void take_updated(Rank& rank, MasterPartition& master, const Slice& updated, int64_t begin,
                    SiteId site);
  /// A broadcast of every parameter from rank 0, while it is whole.
  Program send_first_values(Rank& rank, SiteId site);

 private:
  struct Members {
    GroupId group = world_group;
    int32_t ranks = 1;
    int32_t own = 0;  ///< this rank's place
  };
  struct Gathering {
    Members members;
    std::vector<size_t> parameters;
    Slice whole;
    int64_t shard_elements = 0;
    Ticket done;
    std::vector<Slice> moved;  ///< parts that crossed from the host
  };
  struct Parameter {
    int64_t elements = 0;
    Slice part;  ///< ceil(n / ranks), padded
    State state = State::away;
    std::shared_ptr<Gathering> gathering;
    Slice memory;  ///< of the whole, with padding where it was gathered alone
    Ticket read;   ///< the last use of `part`, from which it was copied
    Slice second;  ///< no_buffer: none
  };

  void gather_of(Rank& rank, const Members& members, const std::vector<size_t>& parameters,
                 SiteId site);
  void keep_second_part(Rank& rank, Parameter& parameter);
  void finish(Rank& rank, Gathering& gathering, SiteId site);
  void make_groups(int64_t elements);
  void allocate_with_drive(Rank& rank);
  Slice bring(Rank& rank, size_t parameter, SiteId site, Ticket& ready);
  void write_first_values(Rank& rank, uint64_t variant);

  Replica* replica_;
  int32_t ranks_;
  int32_t index_ = 0;
  DeviceId device_;
  std::vector<Parameter> parameters_;
  std::vector<size_t> trainable_;
  std::vector<SubGroup> groups_;
  Slice trainable_parts_;  ///< in one piece; with the drive those that stay in memory
  std::optional<ParameterSwapper> swapper_;
  Members all_;
  std::optional<Members> near_;  ///< with second parts
};

}  // namespace lockstep
