#include "backend/gloo/stream_worker.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

#include "backend/gloo/pipe_signal.hpp"

namespace lockstep::backend {

namespace {

class Unanswered final : public Exchange {
 public:
  explicit Unanswered(RankState& rank) : rank_(rank) {}
  void post() override {}
  void receive(Status&) override { rank_.mailbox.wait_for_abort(); }
  void deliver() override {}

 private:
  RankState& rank_;
};

// The rank is no member of the group, the root is none, or there is no such peer.
bool is_answered(const Part& part, const RankState& rank) {
  const Op& op = part.op();
  if (is_point_to_point(op.kind)) {
    return op.peer == any_rank || (op.peer >= 0 && op.peer < rank.shared.options.world_size);
  }
  const auto is_member = [&part](int32_t number) {
    return std::ranges::find(part.members(), number) != part.members().end();
  };
  return is_member(rank.rank) && (!has_root(op.kind) || is_member(op.peer));
}

std::unique_ptr<Exchange> make_exchange(const Part& part, RankState& rank) {
  if (!is_answered(part, rank)) {
    return std::make_unique<Unanswered>(rank);
  }
  switch (part.op().kind) {
    case OpKind::send: return make_send(part, rank);
    case OpKind::recv: return make_receive(part, rank);
    default: return make_collective(part, rank);
  }
}

}  // namespace

StreamWorker::StreamWorker(RankState& rank) : rank_(rank) {
  const PipeSignalBlocked inherited;
  rank_.shared.progress.work(1);
  thread_ = std::thread([this] {
    run();
    rank_.shared.progress.work(-1);
  });
}

StreamWorker::~StreamWorker() { thread_.join(); }

void StreamWorker::push(std::unique_ptr<Submission> submission) {
  queue_.push_back(std::move(submission));
  wakes_.notify_all();
}

void StreamWorker::stop() {
  stopping_ = true;
  wakes_.notify_all();
}

void StreamWorker::run() {
  while (const auto submission = next()) {
    bool met = true;
    if (!wait_for_dependencies(*submission, met)) {
      return;
    }
    rank_.started(submission->ticket);
    const std::optional<Status> status =
        met ? end_of(*submission) : std::optional(Status{Outcome::failed, {}, {}});
    if (!status) {
      return;
    }
    rank_.settle(*submission, *status);
  }
}

// Nothing: the run was aborted, and its ticket has its outcome already.
std::optional<Status> StreamWorker::end_of(const Submission& submission) {
  try {
    try {
      return execute(submission);
    } catch (const ConnectionBroke&) {
      // The peer is gone, and the operation can never complete: it ends as if the peer did not
      // come, by the deadline.
      rank_.connection_broke();
      rank_.mailbox.wait_for_abort();
    } catch (const std::exception&) {
      rank_.note_broken(submission.parts.front().op().site);
      return Status{Outcome::failed, {}, {}};
    }
  } catch (const RunAborted&) {
    return std::nullopt;
  }
}

std::unique_ptr<Submission> StreamWorker::next() {
  std::unique_lock lock(rank_.mutex);
  const Idle idle(rank_.shared.progress);
  wakes_.wait(lock, [this] { return rank_.aborted || stopping_ || !queue_.empty(); });
  if (rank_.aborted || queue_.empty()) {
    return nullptr;
  }
  auto submission = std::move(queue_.front());
  queue_.pop_front();
  return submission;
}

// False: the run was aborted. `met`: all dependencies ended well.
bool StreamWorker::wait_for_dependencies(const Submission& submission, bool& met) {
  std::unique_lock lock(rank_.mutex);
  if (!rank_.tickets.settled(submission.after, Until::all)) {
    const Idle idle(rank_.shared.progress);
    rank_.dependents.push_back(&wakes_);
    wakes_.wait(
        lock, [&] { return rank_.aborted || rank_.tickets.settled(submission.after, Until::all); });
    std::erase(rank_.dependents, &wakes_);
  }
  met = std::ranges::all_of(submission.after, [this](Ticket ticket) {
    return rank_.tickets.status(ticket).outcome == Outcome::ok;
  });
  return !rank_.aborted;
}

Status StreamWorker::execute(const Submission& submission) {
  std::vector<std::unique_ptr<Exchange>> exchanges;
  for (const Part& part : submission.parts) {
    if (is_communication(part.op().kind)) {
      exchanges.push_back(make_exchange(part, rank_));
    } else {
      compute(part.op());
    }
  }
  for (const auto& exchange : exchanges) {
    exchange->post();
  }
  Status status{Outcome::ok, {}, {}};
  receive_all(exchanges, status);
  for (const auto& exchange : exchanges) {
    exchange->deliver();
  }
  return status;
}

// A collective takes long payloads only once it has heard from all members. So that nothing else of
// a grouped call waits for that, each of its collectives waits in a thread of its own.
void StreamWorker::receive_all(const std::vector<std::unique_ptr<Exchange>>& exchanges,
                               Status& status) {
  std::vector<std::exception_ptr> failures(exchanges.size());
  const auto receive = [&](size_t index, Status& into) {
    try {
      exchanges[index]->receive(into);
    } catch (...) {
      failures[index] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (size_t index = 0; index < exchanges.size(); ++index) {
    if (exchanges.size() > 1 && exchanges[index]->hears_from_all()) {
      rank_.shared.progress.work(1);
      threads.emplace_back([&, index] {
        Status unused;
        receive(index, unused);
        rank_.shared.progress.work(-1);
      });
    } else {
      receive(index, status);
    }
  }
  const Idle idle(rank_.shared.progress);
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
}

void StreamWorker::compute(const Op& op) {
  const OpLists& lists = op.list();
  if (op.kind == OpKind::copy && !lists.reads.empty() && !lists.writes.empty()) {
    rank_.store(lists.writes.front(), rank_.load(lists.reads.front()));
  } else if (op.kind == OpKind::compute && op.kernel == Kernel::timed) {
    if (rank_.shared.gloo.sleep_timed_kernels) {
      // The kernel's given time itself, when the world is asked to take it.
      std::this_thread::sleep_for(std::chrono::nanoseconds(op.work / 1000));
    }
  } else if (op.kind == OpKind::compute && op.kernel != Kernel::roofline) {
    const Network* network = rank_.shared.options.network;
    if (rank_.kernels != nullptr) {
      rank_.kernels->execute(op, rank_, network);
    } else {
      execute_kernel(op, rank_, network);
    }
  }
}

}  // namespace lockstep::backend
