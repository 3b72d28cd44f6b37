#include "model/strategy/sharded/deepspeed/parameter_partitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/core/failure.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"

namespace lockstep {

ParameterPartitions::ParameterPartitions(Replica& replica, int32_t ranks, DeviceId device,
                                         const DeepSpeedOptions& options)
    : replica_(&replica), ranks_(ranks), device_(device) {
  for (size_t index = 0; index < replica.parameters().size(); ++index) {
    const Replica::Parameter& parameter = replica.parameters()[index];
    Parameter& own = parameters_.emplace_back();
    own.elements = replica.network().parameter(parameter.place).elements();
    if (parameter.trainable) {
      trainable_.push_back(index);
    }
  }
  make_groups(options.sub_group_size);
  if (options.drive.parameters) {
    swapper_.emplace(options.drive, replica.plan().parameter_dtype);
  }
}

// _create_fp16_sub_groups: a group ends with the parameter that makes it large enough.
void ParameterPartitions::make_groups(int64_t elements) {
  SubGroup group;
  for (const size_t index : trainable_) {
    group.parameters.push_back(index);
    group.elements += part_elements_of(index);
    if (group.elements >= elements || index == trainable_.back()) {
      const int64_t end = group.begin + group.elements;
      groups_.push_back(std::exchange(group, SubGroup{{}, end, 0}));
    }
  }
}

void ParameterPartitions::allocate(Rank& rank, uint64_t variant) {
  index_ = rank.id();
  all_ = {world_group, ranks_, index_};
  if (swapper_) {
    allocate_with_drive(rank);
    write_first_values(rank, variant);
    return;
  }
  const DType dtype = replica_->plan().parameter_dtype;
  const auto part = [&](size_t index) { return part_elements_of(index); };
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

// _create_param_groups_fp16_flat_cpu_memory: host memory takes whole groups, as many as fit in what
// it has for parameters. That memory is there whether groups fit or not.
void ParameterPartitions::allocate_with_drive(Rank& rank) {
  const DType dtype = replica_->plan().parameter_dtype;
  const int64_t all = groups_.empty() ? 0 : groups_.back().begin + groups_.back().elements;
  const int64_t in_host = std::min(all, swapper_->options().parameters_in_host);
  if (in_host > 0) {
    trainable_parts_ = rank.allocate(Purpose::parameter, dtype, in_host, host_device);
  }
  int64_t largest = 0;
  int64_t most = 0;  // as large as it is stored
  bool any_on_drive = false;
  for (const SubGroup& group : groups_) {
    const bool stays = group.begin + group.elements <= in_host;
    int64_t begin = group.begin;
    int64_t stored = 0;
    for (const size_t index : group.parameters) {
      const int64_t elements = part_elements_of(index);
      parameters_[index].part =
          stays ? trainable_parts_.part(begin, elements) : swapper_->add(rank, index, elements);
      begin += elements;
      stored += swapper_->options().aligned(elements, dtype);
    }
    any_on_drive = any_on_drive || !stays;
    most = group.elements > largest ? stored : most;
    largest = std::max(largest, group.elements);
  }
  for (size_t index = 0; index < parameters_.size(); ++index) {
    if (!replica_->parameters()[index].trainable) {
      parameters_[index].part = swapper_->add(rank, index, part_elements_of(index));
    }
  }
  swapper_->allocate(rank, any_on_drive ? most : 0);
}

void ParameterPartitions::write_first_values(Rank& rank, uint64_t variant) {
  if (!replica_->writes_values()) {
    return;
  }
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const Values whole = replica_->state().initial_value(index, variant);
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
  std::vector<size_t> first;
  std::vector<size_t> second;
  for (const size_t index : parameters) {
    (parameters_[index].second.buffer == no_buffer ? first : second).push_back(index);
  }
  if (!second.empty()) {
    gather_of(rank, *near_, second, site);
  }
  if (!first.empty()) {
    gather_of(rank, all_, first, site);
  }
}

void ParameterPartitions::gather_of(Rank& rank, const Members& members,
                                    const std::vector<size_t>& parameters, SiteId site) {
  auto gathering = std::make_shared<Gathering>();
  gathering->members = members;
  gathering->parameters = parameters;
  const DType dtype = replica_->plan().parameter_dtype;
  std::vector<Slice> parts;
  Ticket ready{};
  if (swapper_) {
    swapper_->bring(rank, parameters, site);
  }
  for (const size_t index : parameters) {
    ensure(parameters_[index].state == State::away, "a parameter that is not gathered yet");
    parameters_[index].state = State::under_way;
    parameters_[index].gathering = gathering;
    const bool is_second = parameters_[index].second.buffer != no_buffer;
    Slice part = is_second ? parameters_[index].second : parameters_[index].part;
    gathering->shard_elements += part.elements;
    if (device_ == host_device) {
      part = bring(rank, index, site, ready);
      gathering->moved.push_back(part);
    }
    parts.push_back(part);
  }
  const Purpose purpose = parameters.size() == 1 ? Purpose::gathered : Purpose::communication;
  gathering->whole = rank.allocate(purpose, dtype, gathering->shard_elements * members.ranks);
  Slice own = parts.front();
  const Ticket before = rank.event({compute_stream, {}, site});
  if (parameters.size() > 1) {
    own = gathering->whole.part(members.own * gathering->shard_elements, gathering->shard_elements);
    std::vector<Slice> places;
    int64_t begin = 0;
    for (const Slice& part : parts) {
      places.push_back(own.part(begin, part.elements));
      begin += part.elements;
    }
    ready = elementwise(rank, Kernel::copy, parts, places, 0,
                        {communication_stream, {ready, before}, site});
  }
  gathering->done = rank.all_gather(members.group, own, gathering->whole,
                                    {communication_stream, {ready, before}, site});
  for (const Slice& moved : gathering->moved) {
    rank.release(moved);
  }
}

// To the device, from where it is in host memory.
Slice ParameterPartitions::bring(Rank& rank, size_t parameter, SiteId site, Ticket& ready) {
  Parameter& own = parameters_[parameter];
  const Slice moved = rank.allocate(Purpose::communication, replica_->plan().parameter_dtype,
                                    own.part.elements, DeviceId{0}, queue::communication);
  const Ticket updated = rank.event({stream(queue::compute, host_device), {}, site});
  Slice from = own.part;
  Ticket there{};
  if (swapper_ && swapper_->is_swapped(parameter)) {
    const ParameterSwapper::Present present = swapper_->present(parameter);
    from = present.part.part(0, own.part.elements);
    there = present.read;
  }
  own.read = rank.copy(from, moved, {copy_stream, {updated, there}, site});
  ready = own.read;
  return moved;
}

void ParameterPartitions::give_buffer(size_t parameter) {
  if (swapper_) {
    swapper_->give(parameter, parameters_[parameter].read);
  }
}

void ParameterPartitions::take_updated(Rank& rank, MasterPartition& master, const Slice& updated,
                                       int64_t begin, SiteId site) {
  if (!swapper_) {
    master.write_back(rank, updated, trainable_parts_.part(begin, updated.elements), device_, site);
    return;
  }
  for (const SubGroup& group : groups_) {
    if (group.begin < begin || group.begin >= begin + updated.elements) {
      continue;
    }
    int64_t position = group.begin - begin;
    std::vector<ParameterSwapper::Updated> written;
    for (const size_t index : group.parameters) {
      const Slice& part = parameters_[index].part;
      const Slice from = updated.part(position, part.elements);
      position += part.elements;
      if (swapper_->is_swapped(index)) {
        const Slice through = swapper_->through(written, part.elements);
        master.write_back(rank, from, through, host_device, site);
        written.push_back({index, through});
      } else {
        master.write_back(rank, from, part, host_device, site);
      }
    }
    swapper_->write(rank, written, site);
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
    const int64_t part = gathering.members.group == world_group ? parameter.part.elements
                                                                : parameter.second.elements;
    parameter.state = State::here;
    parameter.gathering.reset();
    parameter.memory =
        alone ? gathering.whole
              : rank.allocate(Purpose::gathered, gathering.whole.dtype, parameter.elements);
    replica_->parameters()[index].tensor.value = parameter.memory.part(0, parameter.elements);
    for (int32_t rank_of_part = 0; !alone && rank_of_part < gathering.members.ranks;
         ++rank_of_part) {
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

// groups.py, _create_zero_param_parallel_group: neighbours.
Program ParameterPartitions::use_second_parts(Rank& rank, int32_t ranks, SiteId site) {
  Members near{{}, ranks, index_ % ranks};
  for (int32_t first = 0; first < ranks_; first += ranks) {
    std::vector<int64_t> members;
    for (int32_t member = first; member < first + ranks; ++member) {
      members.push_back(member);
    }
    const Rank::NewGroup made =
        rank.new_group(world_group, members, {communication_stream, {}, site});
    co_await rank.settle(made.ready);
    near.group = first == index_ - near.own ? made.group : near.group;
  }
  near_ = near;
}

// _partition_param_sec.
void ParameterPartitions::keep_second_part(Rank& rank, Parameter& parameter) {
  if (!near_ || parameter.second.buffer != no_buffer) {
    return;
  }
  const int64_t elements = parameter.part.elements * ranks_ / near_->ranks;
  const int64_t begin = elements * near_->own;
  if (begin > parameter.elements) {
    throw ProgramException(
        site_id(deepspeed_sites::keep_second_part),
        fmt::format("IndexError: start out of range (expected to be in range of [-{0}, {0}], but "
                    "got {1}) (DeepSpeed cuts a parameter of {0} elements in {2} parts of {3}, of "
                    "which this rank's begins behind its end: a smaller zero_hpz_partition_size, "
                    "or larger parameters)",
                    parameter.elements, begin, near_->ranks, elements));
  }
  parameter.second = rank.allocate(Purpose::parameter, parameter.memory.dtype, elements);
  const int64_t there = std::min(elements, parameter.elements - begin);
  if (there > 0) {
    elementwise(rank, Kernel::copy, {parameter.memory.part(begin, there)},
                {parameter.second.part(0, there)}, 0,
                {compute_stream, {}, site_id(deepspeed_sites::keep_second_part)});
  }
}

void ParameterPartitions::drop_second_parts(Rank& rank) {
  for (const size_t index : trainable_) {
    Parameter& parameter = parameters_[index];
    if (parameter.second.buffer != no_buffer && parameter.state != State::under_way) {
      rank.release(std::exchange(parameter.second, Slice{}));
    }
  }
}

void ParameterPartitions::free(Rank& rank, size_t parameter) {
  Parameter& own = parameters_[parameter];
  if (own.state == State::away) {
    return;
  }
  ensure(own.state == State::here, "a parameter that has come is freed");
  own.state = State::away;
  keep_second_part(rank, own);
  replica_->parameters()[parameter].tensor.value = Slice{};
  rank.release(std::exchange(own.memory, Slice{}));
  give_buffer(parameter);
}

}  // namespace lockstep
