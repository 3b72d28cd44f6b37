// Where the background thread stands: all that decides what it does next, by numbers that are the
// same whenever it does the same.
#include "model/strategy/exchange/negotiation/negotiator.hpp"

namespace lockstep {

void SubmissionQueue::remember(ProgramMemory& memory) const {
  memory.tickets.push_back(next_);
  memory.numbers.push_back(std::ssize(submissions_));
  for (const auto& [number, submission] : submissions_) {
    memory.numbers.push_back(number - added_);
    add_numbers(submission.request, memory.numbers);
    memory.numbers.push_back(submission.whole.elements);
    memory.numbers.push_back(static_cast<int64_t>(submission.error));
    memory.tickets.insert(memory.tickets.end(), {submission.ready, submission.announced,
                                                 submission.carried_out, submission.result});
  }
}

// Calls that were carried out before are over: their submissions may be forgotten already.
void ResponseRunner::remember(int64_t added, ProgramMemory& memory) const {
  std::vector<int64_t>& numbers = memory.numbers;
  numbers.insert(numbers.end(), {static_cast<int64_t>(waits_for_), buffer_.elements,
                                 static_cast<int64_t>(buffer_.dtype), std::ssize(reduced_bytes_)});
  for (const Bytes bytes : reduced_bytes_) {
    numbers.push_back(bytes.count());
  }
  if (waits_for_ == WaitsFor::nothing) {
    return;
  }
  for (size_t at = under_way_; at < calls_.size(); ++at) {
    numbers.push_back(std::ssize(calls_[at]));
    for (const Item* item : calls_[at]) {
      numbers.push_back(item->number - added);
      add_numbers(item->response, numbers);
    }
  }
}

bool ResponseRunner::has_joined_items() const {
  for (size_t at = under_way_; at < calls_.size() && waits_for_ != WaitsFor::nothing; ++at) {
    for (const Item* item : calls_[at]) {
      if (item->submission == nullptr) {
        return true;
      }
    }
  }
  return false;
}

// Names without a tensor's are numbers that grow: where one is known that is still to come on this
// rank, it matters how far the rank is from it. Other ranks' are compared with these, so that it
// matters how far ranks are apart. What rank 0 has been asked for, and what a rank that has joined
// answers, is described nowhere.
std::optional<LaneMemory> Negotiator::memory() const {
  const int64_t added = queue_.added();
  const bool is_coordinated = coordinator_ != nullptr && !coordinator_->is_empty();
  if (stands_ == Stands::elsewhere || is_coordinated || has_joined_ ||
      cache_.has_unnamed_from(added) || runner_.has_joined_items()) {
    return std::nullopt;
  }
  LaneMemory memory;
  memory.count = added;
  std::vector<int64_t>& numbers = memory.numbers;
  numbers = {static_cast<int64_t>(stands_),
             taken_ - added,
             take_until_ - added,
             took_something_ ? 1 : 0,
             closes_ ? 1 : 0,
             shut_down_ ? 1 : 0,
             bits_.elements,
             std::ssize(pending_),
             std::ssize(told_)};
  for (const int64_t number : pending_) {
    numbers.push_back(number - added);
  }
  for (const int64_t number : told_) {
    numbers.push_back(number - added);
  }
  cache_.add_numbers(numbers);
  queue_.remember(memory);
  runner_.remember(added, memory);
  memory.tickets.push_back(ended_);
  if (stands_ == Stands::agreeing) {
    memory.values.push_back(bits_);
  }
  return memory;
}

}  // namespace lockstep
