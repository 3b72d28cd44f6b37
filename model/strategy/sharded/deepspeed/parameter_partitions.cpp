#include "model/strategy/sharded/deepspeed/parameter_partitions.hpp"

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

ParameterPartitions::ParameterPartitions(Replica& replica, int32_t ranks, DeviceId device)
    : replica_(&replica), ranks_(ranks), device_(device) {
  for (size_t index = 0; index < replica.parameters().size(); ++index) {
    const Replica::Parameter& parameter = replica.parameters()[index];
    Parameter& own = parameters_.emplace_back();
    own.elements = replica.network().parameter(parameter.place).elements();
    if (parameter.trainable) {
      trainable_.push_back(index);
    }
  }
}

void ParameterPartitions::allocate(Rank& rank, uint64_t variant) {
  index_ = rank.id();
  const DType dtype = replica_->plan().parameter_dtype;
  const auto part = [&](size_t index) {
    return (parameters_[index].elements + ranks_ - 1) / ranks_;
  };
  int64_t all = 0;
  for (const size_t index : trainable_) {
    all += part(index);
  }
  trainable_parts_ = rank.allocate(Purpose::parameter, dtype, all, device_);
  int64_t begin = 0;
  for (const size_t index : trainable_) {
    parameters_[index].part = trainable_parts_.part(begin, part(index));
    begin += part(index);
  }
  for (size_t index = 0; index < parameters_.size(); ++index) {
    if (!replica_->parameters()[index].trainable) {
      parameters_[index].part = rank.allocate(Purpose::parameter, dtype, part(index), device_);
    }
  }
  write_first_values(rank, variant);
}

void ParameterPartitions::write_first_values(Rank& rank, uint64_t variant) {
  if (!replica_->writes_values()) {
    return;
  }
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const Values whole = replica_->initial_value(index, variant);
    const Slice& part = parameters_[index].part;
    Values values(part.dtype, part.elements);
    for (int64_t i = 0; i < part.elements; ++i) {
      const int64_t element = rank.id() * part.elements + i;
      values.set(i, element < whole.size() ? whole.number(element) : 0);
    }
    rank.write(part, values);
  }
}

// Parameters exist whole when the engine starts: rank 0's become everybody's before they are cut.
Program ParameterPartitions::send_first_values(Rank& rank, SiteId site) {
  const Ticket ready = rank.event({compute_stream, {}, site});
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const Slice whole = rank.allocate(Purpose::parameter, replica_->plan().parameter_dtype,
                                      parameters_[index].elements);
    const Ticket sent =
        rank.broadcast(world_group, whole, 0, {communication_stream, {ready}, site});
    co_await rank.settle(sent);
    rank.release(whole);
  }
}

// One parameter alone is gathered where it will be used; several together are copied out of one
// buffer.
void ParameterPartitions::gather(Rank& rank, const std::vector<size_t>& parameters, SiteId site) {
  auto gathering = std::make_shared<Gathering>();
  gathering->parameters = parameters;
  const DType dtype = replica_->plan().parameter_dtype;
  std::vector<Slice> parts;
  Ticket ready{};
  for (const size_t index : parameters) {
    ensure(parameters_[index].state == State::away, "a parameter that is not gathered yet");
    parameters_[index].state = State::under_way;
    parameters_[index].gathering = gathering;
    Slice part = parameters_[index].part;
    gathering->shard_elements += part.elements;
    if (device_ == host_device) {
      const Slice moved = rank.allocate(Purpose::communication, dtype, part.elements, DeviceId{0},
                                        queue::communication);
      const Ticket updated = rank.event({stream(queue::compute, device_), {}, site});
      ready = rank.copy(part, moved, {copy_stream, {updated}, site});
      gathering->moved.push_back(moved);
      part = moved;
    }
    parts.push_back(part);
  }
  const Purpose purpose = parameters.size() == 1 ? Purpose::gathered : Purpose::communication;
  gathering->whole = rank.allocate(purpose, dtype, gathering->shard_elements * ranks_);
  Slice own = parts.front();
  const Ticket before = rank.event({compute_stream, {}, site});
  if (parameters.size() > 1) {
    own = gathering->whole.part(rank.id() * gathering->shard_elements, gathering->shard_elements);
    std::vector<Slice> places;
    int64_t begin = 0;
    for (const Slice& part : parts) {
      places.push_back(own.part(begin, part.elements));
      begin += part.elements;
    }
    ready = elementwise(rank, Kernel::copy, parts, places, 0,
                        {communication_stream, {ready, before}, site});
  }
  gathering->done = rank.all_gather(world_group, own, gathering->whole,
                                    {communication_stream, {ready, before}, site});
  for (const Slice& moved : gathering->moved) {
    rank.release(moved);
  }
}

void ParameterPartitions::wait(Rank& rank, size_t parameter, SiteId site) {
  if (parameters_[parameter].state == State::under_way) {
    const std::shared_ptr<Gathering> gathering = parameters_[parameter].gathering;
    finish(rank, *gathering, site);
  }
}

void ParameterPartitions::finish(Rank& rank, Gathering& gathering, SiteId site) {
  rank.event({compute_stream, {gathering.done}, site});
  const bool alone = gathering.parameters.size() == 1;
  std::vector<Slice> from;
  std::vector<Slice> to;
  int64_t offset = 0;
  for (const size_t index : gathering.parameters) {
    Parameter& parameter = parameters_[index];
    const int64_t part = parameter.part.elements;
    parameter.state = State::here;
    parameter.gathering.reset();
    parameter.memory =
        alone ? gathering.whole
              : rank.allocate(Purpose::gathered, gathering.whole.dtype, parameter.elements);
    replica_->parameters()[index].tensor.value = parameter.memory.part(0, parameter.elements);
    for (int32_t rank_of_part = 0; !alone && rank_of_part < ranks_; ++rank_of_part) {
      const int64_t begin = rank_of_part * part;
      const int64_t count = std::min(part, parameter.elements - begin);
      if (count > 0 && (replica_->plan().numerics || rank_of_part == 0)) {
        from.push_back(
            gathering.whole.part(rank_of_part * gathering.shard_elements + offset, count));
        to.push_back(parameter.memory.part(begin, count));
      }
    }
    offset += part;
  }
  if (alone) {
    return;
  }
  if (replica_->plan().numerics) {
    elementwise(rank, Kernel::copy, from, to, 0, {compute_stream, {}, site});
  } else {
    std::vector<Slice> memories;
    for (const size_t index : gathering.parameters) {
      memories.push_back(parameters_[index].memory);
    }
    moving(rank, {gathering.whole}, memories, {compute_stream, {}, site});
  }
  rank.release(gathering.whole);
}

void ParameterPartitions::free(Rank& rank, size_t parameter) {
  Parameter& own = parameters_[parameter];
  if (own.state == State::away) {
    return;
  }
  ensure(own.state == State::here, "a parameter that has come is freed");
  own.state = State::away;
  replica_->parameters()[parameter].tensor.value = Slice{};
  rank.release(std::exchange(own.memory, Slice{}));
}

}  // namespace lockstep
