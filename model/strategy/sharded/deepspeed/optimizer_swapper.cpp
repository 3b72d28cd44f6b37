#include "model/strategy/sharded/deepspeed/optimizer_swapper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/failure.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

namespace {

// The thread of the rank that waits for its drive, and that updates what has come.
}  // namespace

OptimizerSwapper::OptimizerSwapper(const DriveOptions& options, const OptimizerPlan& optimizer,
                                   std::vector<SubGroup> groups)
    : options_(options), optimizer_(optimizer) {
  for (SubGroup& range : groups) {
    Group& group = groups_.emplace_back();
    group.on_drive = options.takes(Bytes(size_of(DType::fp32)) * range.elements);
    group.range = std::move(range);
  }
}

void OptimizerSwapper::allocate(Rank& rank) {
  int64_t largest = 0;
  for (Group& group : groups_) {
    largest = std::max(largest, stored(group.range.elements));
    if (group.on_drive) {
      group.master = rank.allocate(Purpose::parameter, DType::fp32, stored(group.range.elements),
                                   drive_device);
    }
  }
  buffers_.allocate(rank, DType::fp32, options_.optimizer_buffers, largest);
}

Slice OptimizerSwapper::master_of(size_t group) const {
  return groups_[group].master.part(0, groups_[group].range.elements);
}

Bytes OptimizerSwapper::bytes() const {
  Bytes all{};
  for (const Group& group : groups_) {
    all += group.master.bytes();
    for (const Slice& state : group.state) {
      all += state.bytes();
    }
    for (const auto& [position, gradient] : group.gradients) {
      all += gradient.bytes();
    }
  }
  return all;
}

size_t OptimizerSwapper::group_at(int64_t position) const {
  const auto found = std::ranges::find_if(groups_, [position](const Group& group) {
    return position < group.range.begin + group.range.elements;
  });
  return static_cast<size_t>(found - groups_.begin());
}

std::optional<size_t> OptimizerSwapper::next_on_drive(size_t group) const {
  for (size_t next = group + 1; next < groups_.size(); ++next) {
    if (groups_[next].on_drive) {
      return next;
    }
  }
  return std::nullopt;
}

// Gradients

// Small ones, and what does not fill a whole request, stay where they are.
void OptimizerSwapper::put_gradient(Rank& rank, const Slice& wide, int64_t position, SiteId site) {
  const size_t index = group_at(position);
  Group& group = groups_[index];
  const int64_t offset = position - group.range.begin;
  const int64_t unit = options_.multiple(DType::fp32);
  const int64_t whole_requests =
      group.on_drive && options_.takes(wide.bytes()) ? wide.elements / unit * unit : 0;
  if (whole_requests > 0) {
    make_room(rank, whole_requests, site);
    const Slice place =
        buffers_.of(filling_->buffer, buffers_.elements()).part(filling_->filled, whole_requests);
    const Ticket made = rank.event({compute_stream, {}, site});
    filling_->last = rank.copy(wide.part(0, whole_requests), place,
                               {copy_stream, {made, buffers_.used(filling_->buffer)}, site});
    rank.event({compute_stream, {filling_->last}, site});
    filling_->filled += whole_requests;
    Slice& kept = group.gradients[offset];
    if (kept.buffer == no_buffer) {
      kept = rank.allocate(Purpose::gradient, DType::fp32, whole_requests, drive_device);
    }
    filling_->pieces.emplace_back(place, kept);
  }
  if (whole_requests < wide.elements) {
    // Of a step that was skipped, its place is still taken.
    const auto earlier = std::ranges::find_if(kept_, [&](const Kept& each) {
      return each.group == index && each.position == offset + whole_requests;
    });
    if (earlier != kept_.end()) {
      rank.release(earlier->whole);
      kept_.erase(earlier);
    }
    kept_.push_back({index, offset + whole_requests,
                     wide.part(whole_requests, wide.elements - whole_requests), wide});
  } else {
    rank.release(wide);
  }
}

void OptimizerSwapper::make_room(Rank& rank, int64_t elements, SiteId site) {
  if (!filling_ && to_fill_.empty() && being_written_.empty()) {
    to_fill_ = buffers_.take(buffers_.free());
    if (to_fill_.empty()) {
      throw ProgramException(site,
                             "AssertionError: no swap buffer is free for gradients "
                             "(`buffer_count` of offload_optimizer, or `optimizer_buffer_count`)");
    }
  }
  if (filling_ && filling_->filled + elements <= buffers_.elements()) {
    return;
  }
  write_filled(rank, site);
  if (to_fill_.empty()) {
    for (const size_t buffer : being_written_) {
      buffers_.note_use(buffer, written_);
    }
    to_fill_ = std::exchange(being_written_, {});
  }
  filling_ = Filling{to_fill_.back(), 0, {}, {}};
  to_fill_.pop_back();
}

void OptimizerSwapper::write_filled(Rank& rank, SiteId site) {
  if (!filling_) {
    return;
  }
  for (const auto& [from, to] : filling_->pieces) {
    written_ = rank.copy(from, to, {drive_writes, {filling_->last}, site});
  }
  being_written_.push_back(filling_->buffer);
  filling_.reset();
}

void OptimizerSwapper::finish_gradients(Rank& rank, SiteId site) {
  write_filled(rank, site);
  if (!being_written_.empty()) {
    rank.event({host_thread, {written_}, site});
  }
  for (const size_t buffer : std::exchange(being_written_, {})) {
    buffers_.give(buffer, written_);
  }
  for (const size_t buffer : std::exchange(to_fill_, {})) {
    buffers_.give(buffer, buffers_.used(buffer));
  }
}

bool OptimizerSwapper::has_gradients(size_t group) const {
  return !groups_[group].gradients.empty() ||
         std::ranges::any_of(kept_, [group](const Kept& kept) { return kept.group == group; });
}

// A step

// Optimizers of torch have their count of steps in a tensor.
size_t OptimizerSwapper::counters() const {
  return optimizer_.is_on_host ? 0 : static_cast<size_t>(rule_of(optimizer_.kind).counters());
}

size_t OptimizerSwapper::tensors_of(const Group& group) const {
  return 1 + group.state.size() + (group.state.empty() ? 0 : counters());
}

OptimizerSwapper::Reading OptimizerSwapper::read(Rank& rank, size_t index, SiteId site) {
  const Group& group = groups_[index];
  const size_t needed = tensors_of(group) + (has_gradients(index) ? 1 : 0);
  const size_t free = buffers_.free();
  Reading reading{index, buffers_.take(needed), {}};
  if (reading.buffers.size() < needed) {
    throw ProgramException(
        site,
        fmt::format("AssertionError: {}{} swap buffers are needed, {} are free (raise "
                    "`buffer_count` of offload_optimizer, or `optimizer_buffer_count`{})",
                    is_pipelined() ? "PipelinedOptimizerSwapper ran out of swap buffers: " : "",
                    needed, free,
                    needed > 1 + group.state.size() + 1
                        ? "; or use DeepSpeedCPUAdam: torch's Adam counts steps in a tensor, "
                          "which needs one too"
                        : ""));
  }
  const Ticket now = rank.event({host_thread, {}, site});
  const auto bring = [&](const Slice& from, size_t place, int64_t position) {
    const size_t buffer = reading.buffers[place];
    const Slice to = buffers_.of(buffer, buffers_.elements()).part(position, from.elements);
    reading.done = rank.copy(from, to, {drive_reads, {now, buffers_.used(buffer)}, site});
  };
  bring(group.master, 0, 0);
  for (size_t tensor = 0; tensor < group.state.size(); ++tensor) {
    bring(group.state[tensor], 1 + tensor, 0);
  }
  for (const auto& [position, gradient] : group.gradients) {
    bring(gradient, reading.buffers.size() - 1, position);
  }
  if (tensors_of(group) > 1 + group.state.size()) {
    throw ProgramException(
        site, fmt::format("RuntimeError: a Tensor with {} elements cannot be converted to Scalar "
                          "(torch's Adam counts steps in a tensor, which comes back from the drive "
                          "with the size of a sub-group: use DeepSpeedCPUAdam)",
                          group.range.elements));
  }
  return reading;
}

OptimizerSwapper::Present OptimizerSwapper::swap_in(Rank& rank, size_t group, SiteId site) {
  finish_gradients(rank, site);
  present_ = ahead_ ? std::exchange(ahead_, std::nullopt) : read(rank, group, site);
  rank.event({host_thread, {present_->done}, site});
  const Present present = present_of(rank, *present_, site);
  const std::optional<size_t> next = next_on_drive(group);
  if (options_.pipeline_read && next) {
    ahead_ = read(rank, *next, site);
  }
  return present;
}

OptimizerSwapper::Present OptimizerSwapper::present_of(Rank& rank, const Reading& reading,
                                                       SiteId site) {
  const Group& group = groups_[reading.group];
  const int64_t elements = group.range.elements;
  Present present;
  present.master = buffers_.of(reading.buffers.front(), elements);
  for (size_t tensor = 0; tensor < group.state.size(); ++tensor) {
    present.state.push_back(buffers_.of(reading.buffers[1 + tensor], elements));
  }
  if (has_gradients(reading.group)) {
    present.gradient = buffers_.of(reading.buffers.back(), elements);
    present.missing = missing_of(reading.group);
    bring_kept(rank, reading.group, present.gradient, site);
  }
  return present;
}

std::vector<std::pair<int64_t, int64_t>> OptimizerSwapper::missing_of(size_t index) const {
  std::map<int64_t, int64_t> there;
  for (const auto& [position, gradient] : groups_[index].gradients) {
    there[position] = gradient.elements;
  }
  for (const Kept& kept : kept_) {
    if (kept.group == index) {
      there[kept.position] = kept.part.elements;
    }
  }
  std::vector<std::pair<int64_t, int64_t>> missing;
  int64_t known = 0;
  there[groups_[index].range.elements] = 0;
  for (const auto& [position, elements] : there) {
    if (position > known) {
      missing.emplace_back(known, position - known);
    }
    known = std::max(known, position + elements);
  }
  return missing;
}

void OptimizerSwapper::bring_kept(Rank& rank, size_t group, const Slice& gradient, SiteId site) {
  const Ticket now = rank.event({host_thread, {}, site});
  for (const Kept& kept : kept_) {
    if (kept.group == group) {
      const Ticket made = rank.event({compute_stream, {}, site});
      const Ticket crossed = rank.copy(kept.part, gradient.part(kept.position, kept.part.elements),
                                       {copy_stream, {made, now}, site});
      rank.event({compute_stream, {crossed}, site});
      rank.event({host_thread, {crossed}, site});
      rank.release(kept.whole);
    }
  }
  std::erase_if(kept_, [group](const Kept& kept) { return kept.group == group; });
}

void OptimizerSwapper::finish(Rank& rank, const Writing& writing, SiteId site) {
  rank.event({host_thread, {writing.done}, site});
  for (const size_t buffer : writing.buffers) {
    buffers_.give(buffer, writing.done);
  }
}

void OptimizerSwapper::swap_out(Rank& rank, size_t index, const std::vector<MadeState>& made,
                                SiteId site) {
  if (behind_) {
    finish(rank, *std::exchange(behind_, std::nullopt), site);
  }
  Group& group = groups_[index];
  Writing writing{std::exchange(present_, std::nullopt)->buffers, {}};
  const Ticket now = rank.event({host_thread, {}, site});
  const auto bring = [&](size_t buffer, const Slice& to) {
    writing.done = rank.copy(buffers_.of(buffer, to.elements), to, {drive_writes, {now}, site});
  };
  std::vector<size_t> free;
  const size_t new_tensors = made.empty() ? 0 : made.front().tensors.size();
  if (new_tensors > 0 && is_pipelined()) {
    free = take_for_made_state(new_tensors, site);
  }
  bring(writing.buffers.front(), group.master);
  for (size_t tensor = 0; tensor < group.state.size(); ++tensor) {
    bring(writing.buffers[1 + tensor], group.state[tensor]);
  }
  if (new_tensors > 0) {
    free = is_pipelined() ? free : take_for_made_state(new_tensors, site);
    writing.done = write_made_state(rank, group, made, free, site);
    writing.buffers.insert(writing.buffers.end(), free.begin(), free.end());
  }
  if (options_.pipeline_write && next_on_drive(index)) {
    behind_ = std::move(writing);
  } else {
    finish(rank, writing, site);
  }
}

// State that an optimizer makes in its first step is outside the buffers: it goes through those
// that are free, in turn, or, where swapping is pipelined, through one for each tensor.
std::vector<size_t> OptimizerSwapper::take_for_made_state(size_t tensors, SiteId site) {
  const size_t needed = is_pipelined() ? tensors + counters() : 1;
  std::vector<size_t> free = buffers_.take(is_pipelined() ? needed : buffers_.free());
  if (free.size() < needed) {
    throw ProgramException(
        site, fmt::format(
                  "{}: {} swap buffers are needed for new optimizer state, {} are free (raise "
                  "`buffer_count` of offload_optimizer)",
                  is_pipelined() ? "AssertionError" : "ValueError: range() arg 3 must not be zero",
                  needed, free.size()));
  }
  return free;
}

Ticket OptimizerSwapper::write_made_state(Rank& rank, Group& group,
                                          const std::vector<MadeState>& made,
                                          const std::vector<size_t>& free, SiteId site) {
  const size_t tensors = made.front().tensors.size();
  Ticket last{};
  for (size_t tensor = 0; tensor < tensors; ++tensor) {
    const Slice to = rank.allocate(Purpose::optimizer_state, DType::fp32,
                                   stored(group.range.elements), drive_device);
    const size_t buffer = free[tensor % free.size()];
    const Slice through = buffers_.of(buffer, to.elements);
    rank.event({host_thread, {buffers_.used(buffer)}, site});
    std::vector<Slice> from;
    std::vector<Slice> places;
    for (const MadeState& each : made) {
      from.push_back(each.tensors[tensor]);
      places.push_back(through.part(each.position, each.tensors[tensor].elements));
    }
    const Ticket there = elementwise(rank, Kernel::copy, from, places, 0, {host_thread, {}, site});
    last = rank.copy(through, to, {drive_writes, {there}, site});
    buffers_.note_use(buffer, last);
    group.state.push_back(to);
  }
  for (const MadeState& each : made) {
    for (const Slice& state : each.tensors) {
      rank.release(state);
    }
  }
  return last;
}

void OptimizerSwapper::forget_state(Rank& rank) {
  for (Group& group : groups_) {
    for (const Slice& state : std::exchange(group.state, {})) {
      rank.release(state);
    }
  }
}

}  // namespace lockstep
