#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "backend/gloo/exchange.hpp"
#include "backend/gloo/rank_state.hpp"

namespace lockstep::backend {

/// One stream of one rank: a thread that runs what was submitted, in order. Ends when stopped and
/// its queue is empty, or when the run is aborted.
class StreamWorker {
 public:
  explicit StreamWorker(RankState& rank);
  /// Joins the thread; `stop` or an abort came before.
  ~StreamWorker();

  // Called with the rank's mutex held.
  void push(std::unique_ptr<Submission> submission);
  void stop();

 private:
  void run();
  std::unique_ptr<Submission> next();
  bool wait_for_dependencies(const Submission& submission, bool& met);
  std::optional<Status> end_of(const Submission& submission);
  Status execute(const Submission& submission);
  void receive_all(const std::vector<std::unique_ptr<Exchange>>& exchanges, Status& status);
  void compute(const Op& op);

  RankState& rank_;
  std::condition_variable wakes_;
  std::deque<std::unique_ptr<Submission>> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockstep::backend
