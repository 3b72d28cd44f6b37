#include "model/trainer/loop/counted_decisions.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "model/expression/evaluate.hpp"
#include "model/user_program/rank_names.hpp"

namespace lockstep {

namespace {

constexpr size_t kinds_max = 64;

/// Counters, what a rank is called, and names that the program makes of these.
class CounterNames final : public Environment {
 public:
  CounterNames(const Repetition& repetition, const Place& place,
               const CountedDecisions::Counters& counters)
      : repetition_(repetition), place_(place), counters_(counters) {}

  std::optional<Value> lookup(std::string_view name) override {
    if (const auto bound = repetition_.bound.find(name); bound != repetition_.bound.end()) {
      return evaluate(bound->second, *this);
    }
    if (name == "batch_idx") {
      return Value(counters_.batch);
    }
    if (name == "epoch") {
      return Value(counters_.epoch);
    }
    if (name == "global_step") {
      return Value(counters_.step);
    }
    if (name == "num_batches") {
      return Value(counters_.batches);
    }
    if (name == "is_last_batch") {
      return Value(counters_.is_last);
    }
    return name_of_rank(name, place_);
  }
  double random(const SourcePlace& /*place*/) override { return 0; }
  bool unknown(const SourcePlace& /*place*/) override { return false; }

 private:
  const Repetition& repetition_;
  const Place& place_;
  const CountedDecisions::Counters& counters_;
};

}  // namespace

CountedDecisions::CountedDecisions(const Repetition& repetition, std::vector<Place> places)
    : repetition_(repetition), places_(std::move(places)) {}

bool CountedDecisions::uses(std::string_view counter) const {
  const auto names_it = [&](const Expression& expression) {
    return std::ranges::find(expression.names(), counter) != expression.names().end();
  };
  return std::ranges::any_of(repetition_.counted, names_it) ||
         std::ranges::any_of(repetition_.bound,
                             [&](const auto& name) { return names_it(name.second); });
}

std::vector<Value> CountedDecisions::values_at(const Counters& counters) const {
  std::vector<Value> values;
  for (const Place& place : places_) {
    CounterNames names(repetition_, place, counters);
    for (const Expression& expression : repetition_.counted) {
      values.push_back(evaluate(expression, names));
    }
  }
  return values;
}

// Within a batch a statement stands before the optimizer's step or behind it.
int64_t CountedDecisions::kind_of(const Counters& counters) {
  std::vector<Value> values;
  try {
    values = values_at(counters);
    if (counters.steps && uses("global_step")) {
      Counters behind = counters;
      ++behind.step;
      const std::vector<Value> later = values_at(behind);
      values.insert(values.end(), later.begin(), later.end());
    }
  } catch (const EvaluationError&) {
    return -++strangers_;
  }
  const auto known = std::ranges::find(known_, values);
  if (known != known_.end()) {
    return known - known_.begin();
  }
  if (known_.size() == kinds_max) {
    return -++strangers_;
  }
  known_.push_back(std::move(values));
  return std::ssize(known_) - 1;
}

std::vector<int64_t> CountedDecisions::kinds_of_pass(Counters first, int64_t window) {
  std::vector<int64_t> kinds;
  const bool differ = uses("batch_idx") || uses("global_step") || uses("is_last_batch");
  for (; first.batch < first.batches; ++first.batch) {
    first.is_last = first.batch + 1 == first.batches;
    first.steps = window > 0 && ((first.batch + 1) % window == 0 || first.is_last);
    kinds.push_back(differ || kinds.empty() ? kind_of(first) : kinds.front());
    first.step += first.steps ? 1 : 0;
  }
  return kinds;
}

const std::vector<int64_t>& CountedDecisions::windows_of_pass(const Counters& first,
                                                              int64_t window) {
  const bool again = batches_ == first.batches && !uses("epoch") && !uses("global_step");
  if (empty() || again) {
    return windows_;
  }
  windows_.clear();
  batches_ = first.batches;
  const std::vector<int64_t> kinds = kinds_of_pass(first, window);
  for (auto at = kinds.begin(); at != kinds.end();) {
    const auto end = kinds.end() - at > window ? at + window : kinds.end();
    windows_.push_back(kind_of_window({at, end}));
    at = end;
  }
  return windows_;
}

int64_t CountedDecisions::kind_of_window(std::vector<int64_t> batches) {
  const bool is_known = known_windows_.contains(batches);
  const bool is_strange = std::ranges::any_of(batches, [](int64_t kind) { return kind < 0; });
  if (is_strange || (!is_known && std::ssize(known_windows_) == windows_max)) {
    return -++strangers_;
  }
  return known_windows_.try_emplace(std::move(batches), std::ssize(known_windows_)).first->second;
}

}  // namespace lockstep
