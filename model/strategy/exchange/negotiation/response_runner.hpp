#pragma once

#include <span>
#include <utility>
#include <vector>

#include "model/strategy/exchange/negotiation/submission.hpp"
#include "model/strategy/exchange/negotiation/tensor_fusion.hpp"

namespace lockstep {

/// How agreed tensors travel.
struct FusionOptions {
  Bytes threshold{int64_t{128} << 20};
  double predivide_factor = 1;  ///< of averages: divided by it before the sum, multiplied after
  /// NCCL divides each contribution before the sum, where nothing else is asked for; Gloo's sums
  /// are divided afterwards.
  bool average_of_backend = false;
  bool waits_for_each = false;  ///< Gloo: the thread itself carries a call out
  /// Of its own memory: `metric` carries values in a run that computes none.
  Purpose purpose = Purpose::communication;
  bool keeps_whole_buffer = false;  ///< else only as much as travels, where values are computed
};

/// Carries out what the ranks agreed on, in its order (horovod/common/operations.cc,
/// PerformOperation; ops/collective_operations.cc).
class ResponseRunner {
 public:
  explicit ResponseRunner(const FusionOptions& options) : options_(options) {}

  /// A response and what this rank has handed over for it; null: it has joined, and gives zeros.
  struct Item {
    TensorResponse response;
    Submission* submission = nullptr;
    int64_t number = -1;  ///< of the submission
  };
  /// The ranks that agree.
  struct Among {
    GroupId group;
    std::span<const int32_t> members;  ///< ascending
  };
  Program run(Rank& rank, Among among, std::vector<Item> items);
  /// Bytes of gradients in each all_reduce that has some, since the last question.
  std::vector<Bytes> take_reduced_bytes() { return std::exchange(reduced_bytes_, {}); }
  void release(Rank& rank);
  /// Where it stands, numbers of submissions relative to `added`.
  void remember(int64_t added, ProgramMemory& memory) const;
  /// Whether it carries out what this rank has not handed over.
  bool has_joined_items() const;

 private:
  using Call = std::vector<Item*>;
  enum class WaitsFor : uint8_t { nothing, data, result };

  std::vector<Call> calls_of(std::vector<Item>& items) const;
  Program run_call(Rank& rank, Among among, Call call);
  std::vector<Slice> tensors_of(Rank& rank, const Call& call, std::vector<Slice>& lent) const;
  Program all_reduce(Rank& rank, Among among, const Call& call, Ticket ready);
  Ticket all_gather(Rank& rank, Among among, const std::vector<int64_t>& parts, Submission& own);
  Slice buffer_of(Rank& rank, DType dtype, int64_t elements);

  FusionOptions options_;
  Slice buffer_;
  std::vector<Bytes> reduced_bytes_;
  std::vector<Call> calls_;
  size_t under_way_ = 0;  ///< of these
  WaitsFor waits_for_ = WaitsFor::nothing;
};

}  // namespace lockstep
