#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/exchange/negotiation/tensor_request.hpp"

namespace lockstep {

/// A tensor that this rank has handed over.
struct Submission {
  TensorRequest request;
  Slice data;          ///< reduced or sent in place; of all_gather: this rank's part
  Slice whole;         ///< of all_gather; none: made once its size is known
  Ticket ready;        ///< the data are there
  Ticket announced;    ///< a promise: the tensor is in the queue
  Ticket carried_out;  ///< a promise: `result` is known
  Ticket result;       ///< the data may be used
  TensorResponse::Error error = TensorResponse::Error::none;
  std::string name{};     ///< as users know it; numbers of requests do not tell it
  std::string failure{};  ///< the message of `error`
};

/// What a rank has handed over, by number from 0. Its host adds at the end and waits; its
/// background thread takes from the front.
class SubmissionQueue {
 public:
  /// Before the first add().
  void open(Rank& rank) { next_ = rank.promise(); }
  /// Gives its number.
  int64_t add(Rank& rank, Submission submission) {
    submission.announced = next_;
    submission.carried_out = rank.promise();
    submissions_.emplace(added_, submission);
    next_ = rank.promise();
    rank.fulfil(submission.announced);
    return added_++;
  }
  int64_t added() const { return added_; }
  /// Settles once the queue has this number, which is at most added().
  Ticket announced(int64_t number) const {
    return number == added_ ? next_ : submissions_.at(number).announced;
  }
  Submission& at(int64_t number) { return submissions_.at(number); }
  const Submission& at(int64_t number) const { return submissions_.at(number); }
  void forget(int64_t number) { submissions_.erase(number); }
  /// What it holds, by number relative to the next one.
  void remember(ProgramMemory& memory) const;

 private:
  std::map<int64_t, Submission> submissions_;
  int64_t added_ = 0;
  Ticket next_;
};

}  // namespace lockstep
