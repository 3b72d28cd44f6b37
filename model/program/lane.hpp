#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "model/core/ids.hpp"
#include "model/program/task.hpp"

namespace lockstep {

class DescribedLane;

/// One host thread of one rank: a stack of coroutines and the loop that resumes the innermost. The
/// world owns lanes and calls `resume`; nothing resumes a lane from within a lane.
class Lane {
 public:
  Lane(RankId rank, LaneId id, Program program)
      : rank_(rank), id_(id), program_(std::move(program)) {
    program_.handle_.promise().lane = this;
    top_ = program_.handle_;
    top_promise_ = &program_.handle_.promise();
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  RankId rank() const { return rank_; }
  LaneId id() const { return id_; }
  bool done() const { return !top_; }
  /// The exception that ended the program, or null. Only when done.
  std::exception_ptr failure() const { return program_.handle_.promise().failure; }

  /// Runs until the innermost coroutine waits for the world or the program has ended. A flat loop:
  /// a million sub-programs that never wait use no more stack than one.
  void resume() {
    waiting_ = false;
    while (top_ && !waiting_) {
      top_.resume();
    }
  }

  /// A lane beside the first of its rank whose program can be described, by what lives as long as
  /// it.
  void is_described_by(const DescribedLane& description) { description_ = &description; }
  /// Null: nothing describes it.
  const DescribedLane* description() const { return description_; }

  /// Called by an awaiter that has asked the world to resume this lane.
  void wait() { waiting_ = true; }

  void enter(std::coroutine_handle<> child, detail::PromiseBase& promise) {
    promise.lane = this;
    promise.parent = top_;
    promise.parent_promise = top_promise_;
    top_ = child;
    top_promise_ = &promise;
  }
  void leave() {
    const detail::PromiseBase& finished = *top_promise_;
    top_ = finished.parent;
    top_promise_ = finished.parent_promise;
  }

 private:
  RankId rank_;
  LaneId id_;
  bool waiting_ = false;
  const DescribedLane* description_ = nullptr;
  Program program_;
  std::coroutine_handle<> top_;
  detail::PromiseBase* top_promise_ = nullptr;
};

template <class Promise>
void detail::FinalAwaiter::await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
  finished.promise().lane->leave();
}

template <class Result>
template <class Promise>
void Task<Result>::await_suspend(std::coroutine_handle<Promise> parent) {
  parent.promise().lane->enter(handle_, handle_.promise());
}

template <class Promise>
void Task<void>::await_suspend(std::coroutine_handle<Promise> parent) {
  parent.promise().lane->enter(handle_, handle_.promise());
}

}  // namespace lockstep
