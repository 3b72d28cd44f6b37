#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "model/core/ensure.hpp"

namespace lockstep {

class Lane;

namespace detail {

/// State of every coroutine of a lane: its lane and the coroutine that awaits it.
struct PromiseBase {
  Lane* lane = nullptr;
  std::coroutine_handle<> parent;
  PromiseBase* parent_promise = nullptr;
  std::exception_ptr failure;

  std::suspend_always initial_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { failure = std::current_exception(); }
};

/// Hands the end of a coroutine to its lane's loop: no nested resume, so the stack stays flat.
struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> finished) const noexcept;
  void await_resume() const noexcept {}
};

}  // namespace detail

/// A lazy coroutine, run by a Lane. Awaiting one runs it as a sub-program of the same lane; its
/// exception and its result come out of the co_await.
///
/// Rules (g++ 12 miscompiles what breaks them; a test looks): no capturing lambda is a coroutine,
/// no non-trivial aggregate is created inside a co_await expression, parameters by value unless
/// they own the run.
template <class Result>
class [[nodiscard]] Task {
 public:
  struct promise_type : detail::PromiseBase {
    std::optional<Result> result;
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    detail::FinalAwaiter final_suspend() noexcept { return {}; }
    template <class Value>
    void return_value(Value&& value) {
      result.emplace(std::forward<Value>(value));
    }
  };
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) {
      handle_.destroy();
    }
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> parent);
  Result await_resume() {
    if (handle_.promise().failure) {
      std::rethrow_exception(handle_.promise().failure);
    }
    return std::move(*handle_.promise().result);
  }

 private:
  friend class Lane;
  Handle handle_ = nullptr;
};

template <>
class [[nodiscard]] Task<void> {
 public:
  struct promise_type : detail::PromiseBase {
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    detail::FinalAwaiter final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
  };
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) {
      handle_.destroy();
    }
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> parent);
  void await_resume() {
    if (handle_.promise().failure) {
      std::rethrow_exception(handle_.promise().failure);
    }
  }

 private:
  friend class Lane;
  Handle handle_ = nullptr;
};

/// The program of a rank, or of one of its lanes, from start to end.
using Program = Task<void>;

}  // namespace lockstep

#include "model/program/lane.hpp"
