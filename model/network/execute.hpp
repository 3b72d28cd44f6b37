#pragma once

#include "model/core/op.hpp"

namespace lockstep {

struct Network;
struct UpdateSensitivity;
class ValueStore;

/// Where a kernel finds its operands. `load` gives empty values where a buffer carries none.
class Operands {
 public:
  virtual ~Operands() = default;
  virtual Values load(const Slice& from) = 0;
  virtual void store(const Slice& to, const Values& values) = 0;
  /// Where optimizers note what they make of an error of their gradients; null: nobody asks.
  virtual UpdateSensitivity* sensitivity_of(const Slice& /*parameter*/) { return nullptr; }
};

/// The reference arithmetic of a compute operation, true to its types; the order of every sum is
/// fixed, so that all worlds that use it agree bit for bit. Does nothing when an operand carries no
/// values, or for a kernel that only has a cost. `network` is needed by layer kernels.
void execute_kernel(const Op& op, Operands& operands, const Network* network);

/// Executes the compute operations of one rank; its streams may call it at the same time.
class KernelExecutor {
 public:
  virtual ~KernelExecutor() = default;
  virtual void execute(const Op& op, Operands& operands, const Network* network) = 0;
  /// Where it keeps the rank's buffers, which it then finds there; null: it asks `operands`.
  virtual ValueStore* store() { return nullptr; }
};

/// The result of a collective on one member. `contributions` are the inputs of all members in group
/// order (empty where a buffer carries none); `self` is this member's index.
struct CollectiveInputs {
  std::span<const Values* const> contributions;
  int64_t self = 0;
  int64_t root = 0;  ///< index in the group
};
/// The intermediate that all members share: the sum, the concatenation, the root's data.
/// Empty: a contribution is missing, or every member makes its own (all_to_all).
Values collective_whole(const Op& op, AverageOrder order, const CollectiveInputs& inputs);
/// Whether what a member gets is `whole` itself.
bool gives_whole(OpKind kind);
/// The part of `whole` that a member receives: all, its own part, or nothing.
Values collective_share(const Op& op, const Values& whole, const CollectiveInputs& inputs);

/// The new content of the op's output (writes[0]); empty: nothing is written. An uneven
/// all_to_all needs the send splits of every member: `splits_of(member)`.
Values collective_result(const Op& op, AverageOrder order, const CollectiveInputs& inputs,
                         const std::vector<std::span<const int64_t>>& splits_of_members);

}  // namespace lockstep
