#pragma once

#include <vector>

#include "model/core/op.hpp"

namespace lockstep::backend {

/// An operation with lists of its own, which outlive the call of submit. `OpLists::after` is left
/// out: it belongs to the submission.
class OwnedOp {
 public:
  explicit OwnedOp(const Op& op)
      : op_(op),
        reads_(op.list().reads.begin(), op.list().reads.end()),
        writes_(op.list().writes.begin(), op.list().writes.end()),
        splits_(op.list().splits.begin(), op.list().splits.end()),
        scalars_(op.list().scalars.begin(), op.list().scalars.end()),
        lists_{{}, reads_, writes_, splits_, scalars_} {
    op_.lists = &lists_;
  }
  // It has addresses within itself.
  OwnedOp(const OwnedOp&) = delete;
  OwnedOp& operator=(const OwnedOp&) = delete;

  const Op& get() const { return op_; }

 private:
  Op op_;
  std::vector<Slice> reads_;
  std::vector<Slice> writes_;
  std::vector<int64_t> splits_;
  std::vector<double> scalars_;
  OpLists lists_;
};

}  // namespace lockstep::backend
