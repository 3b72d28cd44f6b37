// The way of an operation from its stream's queue to the device, and from there to its end.
#include <algorithm>

#include "backend/device/device_host.hpp"
#include "model/network/arithmetic.hpp"

namespace lockstep::backend {

bool DeviceHost::advance() {
  bool moved = false;
  for (auto& [on, stream] : streams_) {
    moved = settle_reached(stream) || moved;
  }
  for (auto& [on, stream] : streams_) {
    moved = launch_ready(stream) || moved;
  }
  return moved;
}

bool DeviceHost::settle_reached(DeviceStream& stream) {
  bool moved = false;
  while (!stream.launched.empty() && !aborted_) {
    DeviceWork& work = *stream.launched.front();
    try {
      if (!device_.reached(work.end)) {
        const auto broken = std::ranges::find_if(
            work.parts, [this](const auto& part) { return links_.is_broken(*part.link); });
        if (broken == work.parts.end()) {
          break;
        }
        links_.throw_broken(*broken->link);
      }
      tickets_.start(work.ticket, device_.time_of(work.begin));
    } catch (const DeviceError& error) {
      fail(work, error);
    }
    settle(work, {work.failed ? Outcome::failed : Outcome::ok, {}, {}});
    stream.launched.pop_front();
    moved = true;
  }
  return moved;
}

bool DeviceHost::launch_ready(DeviceStream& stream) {
  bool moved = false;
  while (!stream.queued.empty() && !aborted_) {
    DeviceWork& work = *stream.queued.front();
    if (work.state == DeviceWork::State::queued) {
      if (!dependencies_allow(stream, work)) {
        return moved;
      }
      begin(work);
      moved = true;
    }
    if (!work.failed && !is_taken(work)) {
      return moved;
    }
    moved = true;
    work.state = DeviceWork::State::launched;
    if (work.end == 0) {
      settle(work, {work.failed ? Outcome::failed : Outcome::ok, {}, {}});
    } else {
      stream.launched.push_back(std::move(stream.queued.front()));
    }
    stream.queued.pop_front();
  }
  return moved;
}

// Operations after a failed one fail in turn. Work that the device holds already may be
// waited for there; all else is waited for here.
bool DeviceHost::dependencies_allow(const DeviceStream& stream, DeviceWork& work) {
  const bool here = waits_for_device(work);
  for (const Ticket ticket : work.after) {
    if (tickets_.settled(ticket)) {
      work.failed = work.failed || tickets_.status(ticket).outcome != Outcome::ok;
      continue;
    }
    const auto found = works_.find(key_of(ticket));
    if (here || found == works_.end() || found->second->state != DeviceWork::State::launched) {
      return false;
    }
  }
  return !work.unanswered && ((!here && !work.failed) || stream.launched.empty());
}

bool DeviceHost::waits_for_device(const DeviceWork& work) const {
  return work.parent != nullptr || std::ranges::any_of(work.ops, [this](const OwnedOp& op) {
           return !is_communication(op.get().kind) && device_.waits_for_device(op.get());
         });
}

// Kernels are in the stream at once; communications follow as their links allow.
void DeviceHost::begin(DeviceWork& work) {
  work.state = DeviceWork::State::launching;
  if (work.failed || work.parent != nullptr) {
    return;
  }
  const WatchedCall watched(watchdog_);
  try {
    for (const Ticket ticket : work.after) {
      if (const auto found = works_.find(key_of(ticket)); found != works_.end()) {
        device_.wait_for(number_of(work.on), found->second->end);
      }
    }
    work.begin = device_.mark(number_of(work.on));
    for (const OwnedOp& op : work.ops) {
      if (!is_communication(op.get().kind)) {
        device_.compute(op.get());
      }
    }
  } catch (const DeviceError& error) {
    fail(work, error);
  } catch (const ArithmeticError&) {
    troubles_.note_broken(work.ops.front().get().site);
    work.failed = true;
  }
  if (work.failed) {
    work.end = device_.mark(number_of(work.on));  // what was launched still uses its operands
  }
}

StreamNumber DeviceHost::stream_of(const DeviceWork& work, const DeviceWork::Part& part) const {
  return work.parts.size() == 1 ? number_of(work.on) : part.link->side_stream;
}

// True once the stream holds all of it; its end is marked only then.
bool DeviceHost::is_taken(DeviceWork& work) {
  if (work.parent != nullptr) {
    return make_group(work);
  }
  const StreamNumber on = number_of(work.on);
  try {
    bool all = true;
    for (DeviceWork::Part& part : work.parts) {
      launch_part(work, part);
      all = all && part.state == DeviceWork::State::launched;
    }
    if (!all) {
      return false;
    }
    for (const DeviceWork::Part& part : work.parts) {
      if (const StreamNumber side = stream_of(work, part); side != on) {
        const Mark joined = device_.mark(side);
        device_.wait_for(on, joined);
        device_.forget(joined);
      }
    }
  } catch (const DeviceError& error) {
    fail(work, error);
  }
  work.end = device_.mark(on);
  return true;
}

void DeviceHost::launch_part(DeviceWork& work, DeviceWork::Part& part) {
  Link& link = *part.link;
  const StreamNumber on = stream_of(work, part);
  const WatchedCall watched(watchdog_);
  if (part.state == DeviceWork::State::queued && links_.may_launch(link, part.turn)) {
    for (const Op* op : part.ops) {
      part.linked.push_back({op, link.id, link.self, link.members});
    }
    if (on != number_of(work.on)) {
      device_.wait_for(on, work.begin);
    }
    part.state = DeviceWork::State::launching;
    device_.communicate(on, part.linked);
  }
  if (part.state == DeviceWork::State::launching) {
    const LinkState state = device_.state_of(link.id);
    if (state == LinkState::broken) {
      links_.throw_broken(link);
    }
    if (state == LinkState::ready) {
      device_.complete(on, part.linked);
      link.launched += static_cast<int64_t>(part.ops.size());
      part.state = DeviceWork::State::launched;
    }
  }
}

bool DeviceHost::make_group(DeviceWork& work) {
  const Op& op = work.ops.front().get();
  DeviceWork::Part& part = work.parts.front();
  if (part.link->launched != part.turn) {
    return false;
  }
  try {
    if (work.making == nullptr) {
      tickets_.start(work.ticket, now());
      work.making =
          std::make_unique<GroupMaking>(op, work.parent->key, work.call, work.parent->members,
                                        static_cast<int32_t>(place_.rank.value), board_);
    }
    if (!work.making->all_came()) {
      return false;
    }
  } catch (const DeviceError& error) {
    fail(work, error);
    return true;
  }
  const GroupId id{static_cast<uint32_t>(op.tag)};
  std::vector<int32_t> members = work.making->members();
  const uint64_t key = communicator_key(work.parent->key, work.call, members);
  const DeviceGroup& made = links_.make_group(id, key, std::move(members));
  part.link->launched += 1;
  if (follower_ != nullptr) {
    follower_->grouped(id, made.key, made.members);
  }
  return true;
}

void DeviceHost::settle(const DeviceWork& work, const Status& status) {
  for (const OwnedOp& op : work.ops) {
    let_go(op.get().list().reads);
    let_go(op.get().list().writes);
  }
  const bool on_device = work.end != 0 && status.outcome == Outcome::ok;
  tickets_.settle(work.ticket, status, on_device ? device_.time_of(work.end) : now());
  works_.erase(key_of(work.ticket));
  for (const Mark mark : {work.begin, work.end}) {
    if (mark != 0) {
      device_.forget(mark);
    }
  }
  --in_flight_;
  queue_.wake(tickets_);
}

void DeviceHost::let_go(std::span<const Slice> operands) {
  buffers_.let_go(operands);
  for (const Slice& operand : operands) {
    if (operand.buffer != no_buffer && !buffers_.knows(operand.buffer)) {
      device_.release(operand.buffer);
    }
  }
}

}  // namespace lockstep::backend
