#include "rehearsal/case_workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "model/scenario/expressions_of.hpp"
#include "model/user_program/sites.hpp"
#include "rehearsal/launch/interruption.hpp"

namespace lockstep::cli {

namespace {

constexpr std::chrono::milliseconds between_looks{20};

// What a case is doing; while its ranks run, the statement that they executed last, as
// " at FILE:LINE:COLUMN".
std::string place_of(const CaseWork& work) {
  std::string text;
  if (work.request.deadline != nullptr) {
    const std::string phase = work.request.deadline->phase().text();
    if (!phase.empty()) {
      return " while " + phase;
    }
  }
  if (!work.scenario->program || work.request.deadline == nullptr) {
    return text;
  }
  const SiteId executing = work.request.deadline->values()->executing();
  for_each_statement(*work.scenario->program, [&](const Statement& statement) {
    if (text.empty() && site_of(statement) == executing) {
      text = fmt::format(" at {}:{}:{}", statement.place.file, statement.place.line,
                         statement.place.column);
    }
  });
  return text;
}

/// What the threads share. They hold it, so that it lives as long as the last of them.
class SharedWork {
 public:
  SharedWork(std::vector<CaseWork> cases, std::function<Rehearsal(const CaseWork&)> rehearse)
      : cases_(std::move(cases)), results_(cases_.size()), rehearse_(std::move(rehearse)) {}

  void work() {
    while (const std::optional<size_t> index = take()) {
      std::optional<Rehearsal> result;
      std::exception_ptr failure;
      try {
        result = rehearse_(cases_[*index]);
      } catch (...) {
        failure = std::current_exception();
      }
      end(*index, std::move(result), failure);
    }
  }

  /// Whether all cases have ended; waits for a short time.
  bool wait_until_all_ended() {
    std::unique_lock lock(guard_);
    return changed_.wait_for(lock, between_looks, [this] { return ended_ == expected(); });
  }

  /// Cases that have not begun never will; the results of those that have not ended are undecided.
  CaseResults results(const Deadline& deadline) {
    const std::lock_guard lock(guard_);
    CaseResults results;
    results.leaves_threads = ended_ != expected();
    results.failure = failure_;
    given_up_ = true;
    for (size_t index = 0; index < cases_.size(); ++index) {
      const CaseWork& work = cases_[index];
      results.rehearsals.push_back(
          results_[index] ? std::move(*results_[index])
                          : undecided_rehearsal(work, deadline.reason() + place_of(work)));
    }
    return results;
  }

 private:
  // Of the cases, those that somebody has begun or will begin.
  size_t expected() const { return failure_ ? next_ : cases_.size(); }

  std::optional<size_t> take() {
    const std::lock_guard lock(guard_);
    const bool over = given_up_ || failure_ || next_ == cases_.size();
    return over ? std::nullopt : std::optional(next_++);
  }

  void end(size_t index, std::optional<Rehearsal> result, const std::exception_ptr& failure) {
    const std::lock_guard lock(guard_);
    if (!given_up_) {
      results_[index] = std::move(result);
      failure_ = failure_ ? failure_ : failure;
    }
    ++ended_;
    changed_.notify_all();
  }

  std::vector<CaseWork> cases_;
  std::vector<std::optional<Rehearsal>> results_;
  std::function<Rehearsal(const CaseWork&)> rehearse_;
  std::mutex guard_;
  std::condition_variable changed_;
  size_t next_ = 0;
  size_t ended_ = 0;
  bool given_up_ = false;
  std::exception_ptr failure_;
};

}  // namespace

std::chrono::milliseconds grace_after(Deadline::Clock::duration work) {
  constexpr std::chrono::milliseconds shortest{350};
  constexpr std::chrono::milliseconds longest{3000};
  return std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(work / 10), shortest,
                    longest);
}

bool attend(const std::function<bool()>& wait_until_all_ended, const Deadline& deadline) {
  const Deadline::Clock::time_point begin = Deadline::Clock::now();
  Interruption interruption;
  std::optional<Deadline::Clock::time_point> given_up_at;
  while (!wait_until_all_ended()) {
    if (interruption.arrived()) {
      deadline.interrupt();
    }
    if (!given_up_at && deadline.passed()) {
      const Deadline::Clock::time_point now = Deadline::Clock::now();
      given_up_at = now + grace_after(now - begin);
    }
    if (given_up_at && Deadline::Clock::now() >= *given_up_at) {
      break;
    }
  }
  return interruption.arrived();
}

Rehearsal undecided_rehearsal(const CaseWork& work, const std::string& why) {
  Rehearsal rehearsal;
  rehearsal.scenario = work.scenario;
  rehearsal.sources = work.sources;
  rehearsal.undecided = why;
  return rehearsal;
}

CaseResults run_cases(std::vector<CaseWork> cases,
                      const std::function<Rehearsal(const CaseWork&)>& rehearse,
                      const Deadline& deadline, int threads) {
  const size_t count = std::min(cases.size(), static_cast<size_t>(std::max(1, threads)));
  const auto shared = std::make_shared<SharedWork>(std::move(cases), rehearse);
  std::vector<std::thread> workers;
  for (size_t worker = 0; worker < count; ++worker) {
    workers.emplace_back([shared] {
      leave_interruptions_to_others();
      shared->work();
    });
  }
  attend([&] { return shared->wait_until_all_ended(); }, deadline);
  CaseResults results = shared->results(deadline);
  for (std::thread& worker : workers) {
    if (results.leaves_threads) {
      worker.detach();
    } else {
      worker.join();
    }
  }
  return results;
}

}  // namespace lockstep::cli
