#include "model/strategy/sharded/deepspeed/parameter_swapper.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/failure.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"

namespace lockstep {

namespace {

// The thread of the rank, which waits for what it writes.
}  // namespace

Slice ParameterSwapper::add(Rank& rank, size_t parameter, int64_t elements) {
  if (!options_.takes(Bytes(size_of(dtype_)) * elements)) {
    return rank.allocate(Purpose::parameter, dtype_, elements, host_device);
  }
  if (elements >= options_.parameter_buffer_elements) {
    throw ProgramException(
        site_id(deepspeed_sites::read_parameters),
        fmt::format("AssertionError: More elements {} than buffer size {} (raise `buffer_size` of "
                    "offload_param, Lightning's params_buffer_size)",
                    elements, options_.parameter_buffer_elements));
  }
  const Slice place = rank.allocate(Purpose::parameter, dtype_, stored(elements), drive_device);
  stored_[parameter] = place;
  return place.part(0, elements);
}

void ParameterSwapper::allocate(Rank& rank, int64_t most) {
  buffers_.allocate(rank, dtype_, options_.parameter_buffers,
                    stored(options_.parameter_buffer_elements));
  if (most > 0) {
    on_the_way_ = rank.allocate(Purpose::workspace, dtype_, most, host_device);
  }
}

void ParameterSwapper::bring(Rank& rank, const std::vector<size_t>& parameters, SiteId site) {
  std::vector<size_t> away;
  std::ranges::copy_if(parameters, std::back_inserter(away),
                       [this](size_t parameter) { return is_away(parameter); });
  if (away.empty()) {
    return;
  }
  if (away.size() > buffers_.free()) {
    throw ProgramException(
        site, fmt::format("AssertionError: Not enough buffers {} for swapping {} (raise "
                          "`buffer_count` of offload_param, Lightning's params_buffer_count)",
                          buffers_.free(), away.size()));
  }
  const Ticket now = rank.event({host_thread, {}, site});
  for (const size_t parameter : away) {
    const Slice& place = stored_.at(parameter);
    const size_t buffer = buffers_.take(1).front();
    const Slice whole = buffers_.of(buffer, place.elements);
    const Ticket read = rank.copy(place, whole, {drive_reads, {now, buffers_.used(buffer)}, site});
    present_[parameter] = {buffer, whole, read};
  }
}

void ParameterSwapper::give(size_t parameter, Ticket used) {
  if (const auto found = present_.find(parameter); found != present_.end()) {
    buffers_.give(found->second.buffer, used ? used : found->second.read);
    present_.erase(found);
  }
}

Slice ParameterSwapper::through(const std::vector<Updated>& before, int64_t elements) const {
  int64_t begin = 0;
  for (const Updated& each : before) {
    begin += stored(each.through.elements);
  }
  return on_the_way_.part(begin, elements);
}

void ParameterSwapper::write(Rank& rank, const std::vector<Updated>& updated, SiteId site) {
  if (updated.empty()) {
    return;
  }
  const Ticket now = rank.event({host_thread, {}, site});
  Ticket last{};
  for (const Updated& each : updated) {
    const Slice& place = stored_.at(each.parameter);
    last = rank.copy(Slice{each.through.buffer, dtype_, each.through.begin, place.elements}, place,
                     {drive_writes, {now}, site});
  }
  rank.event({host_thread, {last}, site});
}

}  // namespace lockstep
