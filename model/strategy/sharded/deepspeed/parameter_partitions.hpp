#pragma once

#include <memory>
#include <vector>

#include "model/strategy/layout/shard_layout.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// The parameters of a replica, each of which is cut by itself in parts of ceil(n / ranks)
/// elements; a rank stores its parts, and whole ones exist from gather() to free()
/// (deepspeed/runtime/zero/partition_parameters.py).
class ParameterPartitions {
 public:
  /// Parts lie on `device`: the first, or the host.
  ParameterPartitions(Replica& replica, int32_t ranks, DeviceId device);

  void allocate(Rank& rank, uint64_t variant);
  DeviceId device() const { return device_; }
  int32_t ranks() const { return ranks_; }
  int32_t index() const { return index_; }  ///< this rank's, once allocated
  size_t count() const { return parameters_.size(); }
  int64_t elements_of(size_t parameter) const { return parameters_[parameter].elements; }
  int64_t part_elements_of(size_t parameter) const { return parameters_[parameter].part.elements; }
  /// Trainable parameters in definition order, and this rank's parts of them in one piece.
  const std::vector<size_t>& trainable() const { return trainable_; }
  const Slice& trainable_parts() const { return trainable_parts_; }
  const Slice& part_of(size_t parameter) const { return parameters_[parameter].part; }

  enum class State : uint8_t { away, under_way, here };
  State state_of(size_t parameter) const { return parameters_[parameter].state; }
  /// Starts one all_gather of these, which are away.
  void gather(Rank& rank, const std::vector<size_t>& parameters, SiteId site);
  /// Later work on the compute stream sees the whole parameter, and those gathered with it.
  void wait(Rank& rank, size_t parameter, SiteId site);
  void free(Rank& rank, size_t parameter);
  /// A broadcast of every parameter from rank 0, while it is whole.
  Program send_first_values(Rank& rank, SiteId site);

 private:
  struct Gathering {
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
  };

  void finish(Rank& rank, Gathering& gathering, SiteId site);
  void write_first_values(Rank& rank, uint64_t variant);

  Replica* replica_;
  int32_t ranks_;
  int32_t index_ = 0;
  DeviceId device_;
  std::vector<Parameter> parameters_;
  std::vector<size_t> trainable_;
  Slice trainable_parts_;
};

}  // namespace lockstep
