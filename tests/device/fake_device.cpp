#include "tests/device/fake_device.hpp"

#include <algorithm>
#include <memory>
#include <thread>

#include "io/report/rank_report.hpp"
#include "model/core/ensure.hpp"

namespace lockstep::test {

using backend::LinkedOp;
using backend::LinkState;
using backend::Mark;

void FakeBoard::post(const std::string& key, const std::vector<uint8_t>& word) {
  const std::lock_guard lock(fabric_.mutex);
  fabric_.words[key] = word;
}

std::optional<std::vector<uint8_t>> FakeBoard::look(const std::string& key) {
  const std::lock_guard lock(fabric_.mutex);
  const auto found = fabric_.words.find(key);
  return found == fabric_.words.end() ? std::nullopt : std::optional(found->second);
}

// Memory

void FakeDevice::allocate(BufferId buffer, const BufferSpec& spec, bool carries_values) {
  const int64_t bytes = spec.elements * size_of(spec.dtype);
  if (bytes > room) {
    throw backend::DeviceFull(Bytes(room), Bytes(room));
  }
  buffers_[buffer.value] = {spec, carries_values ? Values(spec.dtype, spec.elements) : Values()};
}

Values FakeDevice::load(const Slice& from) {
  if (from.buffer == no_buffer) {
    return {};
  }
  const Values& values = buffers_.at(from.buffer.value).second;
  return values.empty() ? Values() : values.slice(from.begin, from.elements);
}

void FakeDevice::store(const Slice& to, const Values& values) {
  if (to.buffer == no_buffer || values.empty()) {
    return;
  }
  Values& held = buffers_.at(to.buffer.value).second;
  if (!held.empty()) {
    held.assign(to.begin, values);
  }
}

// Streams

Mark FakeDevice::mark(backend::StreamNumber stream) {
  const Mark mark = ++marks_;
  streams_[stream].push_back([this, mark] {
    const auto passed = std::chrono::steady_clock::now() - start_;
    reached_[mark] =
        Time(std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count() * 1000);
    return true;
  });
  return mark;
}

void FakeDevice::wait_for(backend::StreamNumber stream, Mark mark) {
  ensure(mark != 0 && mark <= marks_, "a mark that was made");
  streams_[stream].push_back([this, mark] { return reached_.contains(mark); });
}

bool FakeDevice::reached(Mark mark) {
  run_streams();
  return reached_.contains(mark);
}

void FakeDevice::run_streams() {
  for (auto& [id, items] : streams_) {
    while (!items.empty() && items.front()()) {
      items.pop_front();
    }
  }
}

void FakeDevice::compute(const Op& op) {
  if (op.kind == OpKind::event) {
    return;
  }
  if (!refusal.empty()) {
    throw backend::DeviceError(refusal);
  }
  streams_[backend::number_of(op.stream)].push_back([this, &op] {
    const OpLists& lists = op.list();
    if (op.kind == OpKind::copy) {
      if (!lists.reads.empty() && !lists.writes.empty()) {
        store(lists.writes.front(), load(lists.reads.front()));
      }
    } else {
      execute_kernel(op, *this, options_.network);
    }
    return true;
  });
}

// Communication

backend::LinkId FakeDevice::open_link(const std::string& name, int32_t self, int32_t size) {
  const std::lock_guard lock(fabric_.mutex);
  fabric_.links[name].opened.insert(self);
  links_.push_back({name, self, size, 2});
  return static_cast<backend::LinkId>(links_.size() - 1);
}

LinkState FakeDevice::state_of(backend::LinkId number) {
  OpenLink& link = links_.at(number);
  if (aborted_) {
    return LinkState::broken;
  }
  run_streams();
  const std::lock_guard lock(fabric_.mutex);
  if (fabric_.links.at(link.name).opened.size() < static_cast<size_t>(link.size)) {
    return LinkState::busy;
  }
  return link.busy_looks-- > 0 ? LinkState::busy : LinkState::ready;
}

void FakeDevice::communicate(backend::StreamNumber stream, std::span<const LinkedOp> ops) {
  for (const LinkedOp& linked : ops) {
    OpenLink& link = links_.at(linked.link);
    link.busy_looks = 2;
  }
  auto arrivals = std::make_shared<std::vector<Arrival>>();
  streams_[stream].push_back(
      [this, arrivals, parts = std::vector<LinkedOp>(ops.begin(), ops.end())] {
        const std::lock_guard lock(fabric_.mutex);
        for (size_t index = arrivals->size(); index < parts.size(); ++index) {
          arrivals->push_back(arrive(parts[index]));
        }
        bool all = true;
        for (Arrival& arrival : *arrivals) {
          arrival.done = arrival.done || finish(arrival);
          all = all && arrival.done;
        }
        return all || aborted_;
      });
}

void FakeDevice::complete(backend::StreamNumber, std::span<const LinkedOp>) {}

FakeDevice::Arrival FakeDevice::arrive(const LinkedOp& linked) {
  const Op& op = *linked.op;
  const OpenLink& own = links_.at(linked.link);
  Fabric::Link& link = fabric_.links.at(own.name);
  const bool is_message = is_point_to_point(op.kind);
  const OpKind counted = is_message ? op.kind : OpKind::barrier;
  const std::pair<bool, int64_t> number{is_message, link.next[{own.self, counted}]++};
  Fabric::Call& call = link.calls[number];
  if (op.kind == OpKind::recv) {
    call.taken = true;
    return {linked, number};
  }
  const OpLists& lists = op.list();
  const std::span<const Slice> from = lists.reads.empty() ? lists.writes : lists.reads;
  call.came[linked.self] = {op.kind,
                            op.bytes.count(),
                            has_root(op.kind) ? op.peer : -1,
                            from.empty() ? Values() : load(from.front()),
                            {lists.splits.begin(), lists.splits.end()}};
  return {linked, number};
}

bool FakeDevice::finish(Arrival& arrival) {
  const LinkedOp& linked = arrival.linked;
  Fabric::Call& call = fabric_.links.at(links_.at(linked.link).name).calls.at(arrival.call);
  if (is_point_to_point(linked.op->kind)) {
    return finish_message(arrival, call);
  }
  const Fabric::Contribution& own = call.came.at(linked.self);
  const bool all = call.came.size() == linked.members.size() &&
                   std::ranges::all_of(call.came, [&own](const auto& entry) {
                     const Fabric::Contribution& other = entry.second;
                     return other.kind == own.kind && other.root == own.root &&
                            (own.kind == OpKind::all_to_all || other.bytes == own.bytes);
                   });
  if (!all) {
    return false;
  }
  if (const Values values = result(linked, call);
      !values.empty() && !linked.op->list().writes.empty()) {
    store(linked.op->list().writes.front(), values);
  }
  return true;
}

bool FakeDevice::finish_message(Arrival& arrival, Fabric::Call& call) {
  const Op& op = *arrival.linked.op;
  if (op.kind == OpKind::send) {
    return call.taken || op.bytes <= options_.eager_limit;
  }
  if (call.came.empty() || call.came.begin()->second.bytes != op.bytes.count()) {
    return false;
  }
  if (!op.list().writes.empty()) {
    store(op.list().writes.front(), call.came.begin()->second.values);
  }
  return true;
}

Values FakeDevice::result(const LinkedOp& linked, const Fabric::Call& call) const {
  std::vector<const Values*> contributions;
  std::vector<std::span<const int64_t>> splits;
  for (const auto& [member, contribution] : call.came) {
    contributions.push_back(&contribution.values);
    splits.push_back(contribution.splits);
  }
  const auto root = std::ranges::find(linked.members, linked.op->peer) - linked.members.begin();
  return collective_result(*linked.op, options_.average_order,
                           {contributions, linked.self, has_root(linked.op->kind) ? root : 0},
                           splits);
}

// Runs

RunResult run_on_fake_devices(const RunOptions& options, std::chrono::milliseconds deadline,
                              const ProgramOfRank& program_of_rank) {
  Fabric fabric;
  std::mutex mutex;
  std::condition_variable all_came;
  int32_t came = 0;
  const auto wait_for_all = [&] {
    std::unique_lock lock(mutex);
    ++came;
    all_came.notify_all();
    all_came.wait(lock, [&] { return came == options.world_size; });
  };
  std::vector<RunResult> results(static_cast<size_t>(options.world_size));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    threads.emplace_back([&, rank] {
      FakeDevice device(fabric, options);
      FakeBoard board(fabric);
      results[static_cast<size_t>(rank)] = backend::run_rank(
          options, deadline, {rank, device, board, wait_for_all, deadline}, program_of_rank);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  RunResult all;
  all.ends.resize(results.size());
  all.memory.resize(results.size());
  all.journal = std::make_unique<Journal>(options.world_size, options.journal);
  all.times_measured = true;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    RankLog log;
    add_rank_report(
        encode_rank_report(results[rank], log, static_cast<int32_t>(rank), {"", "", ""}),
        static_cast<int32_t>(rank), all, log);
  }
  return all;
}

}  // namespace lockstep::test
