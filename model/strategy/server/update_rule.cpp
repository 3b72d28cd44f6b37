#include "model/strategy/server/update_rule.hpp"

#include <algorithm>
#include <limits>

namespace lockstep {

UpdateRule::UpdateRule(const ServerOptions& options, int32_t workers)
    : options_(options), workers_(static_cast<size_t>(workers)), active_(workers) {}

void UpdateRule::answer(int32_t worker, Decision& decision) {
  Worker& of = workers_[static_cast<size_t>(worker)];
  of.waits = false;
  of.pulled = updates_;
  decision.answered.push_back(worker);
}

UpdateRule::Decision UpdateRule::pulled(int32_t worker) {
  Decision decision;
  answer(worker, decision);
  return decision;
}

UpdateRule::Decision UpdateRule::pushed(int32_t worker) {
  Worker& from = workers_[static_cast<size_t>(worker)];
  Decision decision;
  const int64_t age = updates_ - from.pulled;
  staleness_.add(age);
  ++from.clock;
  if (options_.drop_late && age > 0) {
    ++staleness_.dropped;
    answer(worker, decision);
    return decision;
  }
  from.waits = true;
  decision.keeps = true;
  gathered_.push_back(worker);
  update(decision);
  return decision;
}

UpdateRule::Decision UpdateRule::ended(int32_t worker) {
  workers_[static_cast<size_t>(worker)].has_ended = true;
  --active_;
  Decision decision;
  update(decision);
  return decision;
}

int64_t UpdateRule::needed() const {
  if (steps_at_once()) {
    return 1;
  }
  const auto all = static_cast<int64_t>(workers_.size());
  const int64_t wanted = options_.mode == ServerMode::batched ? options_.batch : all;
  return options_.join ? std::min(wanted, active_) : wanted;
}

void UpdateRule::update(Decision& decision) {
  if (!gathered_.empty() && gathered() >= needed()) {
    decision.averaged = gathered();
    ++updates_;
    held_.insert(held_.end(), gathered_.begin(), gathered_.end());
    gathered_.clear();
  }
  answer_permitted(decision);
}

int64_t UpdateRule::slowest_clock() const {
  int64_t slowest = std::numeric_limits<int64_t>::max();
  for (const Worker& worker : workers_) {
    slowest = counts(worker) ? std::min(slowest, worker.clock) : slowest;
  }
  return slowest;
}

// Only ssp holds workers back behind the update that their gradient has made.
void UpdateRule::answer_permitted(Decision& decision) {
  const int64_t slowest = slowest_clock();
  std::ranges::sort(held_);
  std::vector<int32_t> still_held;
  for (const int32_t worker : held_) {
    const bool is_ahead =
        options_.mode == ServerMode::ssp &&
        workers_[static_cast<size_t>(worker)].clock - slowest > options_.max_staleness;
    if (is_ahead) {
      still_held.push_back(worker);
    } else {
      answer(worker, decision);
    }
  }
  held_ = std::move(still_held);
}

// A worker that has ended pushes nothing more, and only its clock may still count.
void UpdateRule::remember(std::vector<int64_t>& numbers) const {
  const int64_t slowest = slowest_clock();
  for (const Worker& worker : workers_) {
    numbers.insert(numbers.end(), {worker.has_ended ? 1 : 0, worker.waits ? 1 : 0,
                                   worker.has_ended ? 0 : updates_ - worker.pulled,
                                   counts(worker) ? worker.clock - slowest : 0});
  }
  for (const std::vector<int32_t>* list : {&gathered_, &held_}) {
    numbers.push_back(std::ssize(*list));
    numbers.insert(numbers.end(), list->begin(), list->end());
  }
}

void UpdateRule::count_again(const Counted& begin, const Counted& end, int64_t times) {
  const int64_t updates = (end.updates - begin.updates) * times;
  const int64_t clocks = (end.clock - begin.clock) * times;
  updates_ += updates;
  for (Worker& worker : workers_) {
    worker.pulled += updates;
    worker.clock += clocks;
  }
  staleness_.merge({(end.staleness.pushes - begin.staleness.pushes) * times,
                    (end.staleness.updates - begin.staleness.updates) * times, end.staleness.most,
                    (end.staleness.dropped - begin.staleness.dropped) * times});
}

std::vector<int32_t> UpdateRule::awaited() const {
  std::vector<int32_t> ranks;
  for (size_t worker = 0; worker < workers_.size(); ++worker) {
    if (!workers_[worker].waits && counts(workers_[worker]) && active_ > 0) {
      ranks.push_back(static_cast<int32_t>(worker));
    }
  }
  return ranks;
}

}  // namespace lockstep
