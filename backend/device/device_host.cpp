#include "backend/device/device_host.hpp"

#include <algorithm>
#include <thread>

#include "model/core/ensure.hpp"

namespace lockstep::backend {

namespace {

// Between two looks at a device that has nothing new: short at first, so that a small operation
// does not wait for its own report.
constexpr int looks_without_pause = 200;
constexpr std::chrono::microseconds pause{20};

}  // namespace

DeviceHost::DeviceHost(const DeviceSeat& seat, const RunOptions& options,
                       std::chrono::milliseconds deadline, Journal* journal,
                       FingerprintBoard* fingerprints)
    : options_(options),
      deadline_(deadline),
      device_(seat.device),
      board_(seat.board),
      place_(place_of(options, seat.rank)),
      stack_(*this, options, journal, fingerprints),
      lanes_(place_.rank, journal),
      watchdog_(seat.held_limit, [&device = seat.device] { device.abort_links(); }),
      start_(Clock::now()),
      moved_(start_),
      buffers_(false, options.device_memory),
      follower_(seat.follower),
      troubles_(seat.tell),
      links_(seat.device, seat.rank, options.world_size) {
  tickets_.follow(follower_);
  device_.start_clock();
}

DeviceHost::~DeviceHost() = default;

Time DeviceHost::now() const {
  return Time(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count()) *
         1000;
}

// The loop

void DeviceHost::run(const ProgramOfRank& program_of_rank) {
  try {
    queue_.add(lanes_.add(program_of_rank(stack_.rank())));
  } catch (...) {
    lanes_.not_started(std::current_exception());
  }
  while (lanes_.any_live()) {
    if (pump(deadline_, [this] { return queue_.has_ready(); }) == Ended::nothing_moved) {
      abort(Outcome::timed_out, true);
      continue;
    }
    if (!queue_.has_ready()) {
      break;  // aborted, and what is left waits for no ticket
    }
    lanes_.resume(queue_.take());
    moved_ = Clock::now();
  }
  lanes_.clear();
}

void DeviceHost::drain(std::chrono::milliseconds limit) {
  moved_ = Clock::now();
  if (!aborted_ && pump(limit, [this] { return in_flight_ == 0; }) == Ended::nothing_moved) {
    abort(Outcome::aborted, false);
  }
}

// A device that computes is not waiting, however long it takes.
DeviceHost::Ended DeviceHost::pump(std::chrono::milliseconds limit,
                                   const std::function<bool()>& done) {
  int looks = 0;
  while (!done()) {
    if (aborted_) {
      queue_.wake(tickets_);
      return Ended::done;
    }
    if (watchdog_.has_released()) {
      return Ended::nothing_moved;
    }
    if (advance()) {
      moved_ = Clock::now();
      looks = 0;
    } else if (++looks > looks_without_pause) {
      if (computes()) {
        moved_ = Clock::now();
      } else if (Clock::now() - moved_ >= limit) {
        return Ended::nothing_moved;
      }
      // Neither CUDA nor NCCL calls the host when several streams move; it can only look again.
      std::this_thread::sleep_for(pause);
    }
  }
  return Ended::done;
}

bool DeviceHost::computes() const {
  return std::ranges::any_of(streams_, [this](const auto& entry) {
    const DeviceStream& stream = entry.second;
    return !stream.launched.empty() && !stream.launched.front()->communicates &&
           tickets_.settled(stream.launched.front()->after, Until::all);
  });
}

void DeviceHost::abort(Outcome outcome, bool is_hang) {
  if (is_hang) {
    hung_ = true;
    waiting_ = queue_.waiting(static_cast<int32_t>(place_.rank.value), tickets_);
  }
  aborted_ = true;
  lanes_.seal();
  device_.abort_links();
  tickets_.end_pending(outcome);
  queue_.wake(tickets_);
}

// A broken link is nobody's own failure: its operation fails, as in every world.
void DeviceHost::fail(DeviceWork& work, const DeviceError& error) {
  work.failed = true;
  troubles_.tell(error.what());
  if (dynamic_cast<const LinkBroken*>(&error) == nullptr && !watchdog_.has_released()) {
    troubles_.note_broken(work.ops.front().get().site);
  }
}

void DeviceHost::tell(RunResult& result) {
  const auto rank = static_cast<size_t>(place_.rank.value);
  result.ends[rank] = troubles_.end_after(lanes_.end());
  result.hung = result.hung || hung_;
  result.operations += operations_;
  result.clock_at_start_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count();
  std::ranges::move(waiting_, std::back_inserter(result.waiting));
  stack_.tell_struck(result);
  result.memory[rank] = buffers_.memory();
  if (result.journal == nullptr) {
    return;
  }
  if (result.journal->options().completions) {
    tickets_.write_to(*result.journal, static_cast<int32_t>(rank));
  }
  links_.write_to(*result.journal);
}

// The port

bool DeviceHost::carries_values(const BufferSpec& spec) const {
  return options_.numerics || spec.purpose == Purpose::metric;
}

BufferId DeviceHost::allocate(const BufferSpec& spec) {
  lanes_.refuse_when_sealed();
  const BufferId buffer = buffers_.allocate(spec);
  const WatchedCall watched(watchdog_);
  try {
    device_.allocate(buffer, spec, carries_values(spec));
  } catch (const DeviceFull& full) {
    buffers_.release(buffer);
    throw OutOfMemory(no_site, Bytes(size_of(spec.dtype)) * spec.elements,
                      full.total() - full.free(), full.total());
  }
  return buffer;
}

// Destructors release buffers, also while an abort unwinds the lane and the device still uses them.
void DeviceHost::release(BufferId buffer, SiteId) {
  if (!lanes_.sealed()) {
    buffers_.release(buffer);
    if (!buffers_.knows(buffer)) {
      device_.release(buffer);
    }
  }
}

void DeviceHost::write(const Slice& to, const Values& values) {
  lanes_.refuse_when_sealed();
  ensure(values.size() == to.elements && values.dtype() == to.dtype, "a write fits its slice");
  if (to.buffer != no_buffer && carries_values(buffers_.spec(to.buffer))) {
    const WatchedCall watched(watchdog_);
    device_.write(to, values);
  }
}

Values DeviceHost::read(const Slice& from) {
  lanes_.refuse_when_sealed();
  if (from.buffer == no_buffer || from.elements == 0 ||
      !carries_values(buffers_.spec(from.buffer))) {
    return {};
  }
  const WatchedCall watched(watchdog_);
  return device_.read(from);
}

void DeviceHost::wait_begins(std::span<const Ticket>, Until) { lanes_.refuse_when_sealed(); }

bool DeviceHost::settled(Ticket ticket) const { return tickets_.settled(ticket); }

void DeviceHost::resume_when_settled(std::span<const Ticket> tickets, Until until, Lane& lane) {
  queue_.wait(tickets, until, lane);
  queue_.wake(tickets_);
}

Status DeviceHost::status(Ticket ticket) const { return tickets_.status(ticket); }

Lane& DeviceHost::start_lane(Program program) {
  lanes_.refuse_when_sealed();
  Lane& lane = lanes_.add(std::move(program));
  queue_.add(lane);
  return lane;
}

Ticket DeviceHost::promise() {
  lanes_.refuse_when_sealed();
  return tickets_.add(lanes_.current(), now());
}

void DeviceHost::fulfil(Ticket promise) {
  lanes_.refuse_when_sealed();
  tickets_.settle(promise, {Outcome::ok, {}, {}}, now());
  queue_.wake(tickets_);
}

uint32_t DeviceHost::choose(SiteId, ChoiceKind, uint32_t, uint32_t local) {
  lanes_.refuse_when_sealed();
  return local;
}

}  // namespace lockstep::backend
