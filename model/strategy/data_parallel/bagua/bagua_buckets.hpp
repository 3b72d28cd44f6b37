#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "model/strategy/data_parallel/bagua/bagua_exchange.hpp"
#include "model/strategy/data_parallel/bagua/bucket_operation.hpp"
#include "model/strategy/exchange/bucket.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// Trainable parameters of a replica in buckets, in reverse order of definition (bagua/service).
BucketAssignment bagua_buckets(const Replica& replica, Bytes bucket_size);

/// Something of every parameter is exchanged bucket by bucket while the backward runs: its
/// gradient, or the first moment that QAdam makes of it. A bucket goes once all of it is there and
/// the bucket before it has gone, in this backward or a later one.
class BaguaBuckets final : public BaguaExchange {
 public:
  struct Options {
    Bytes bucket_size{};
    bool flatten =
        true;  ///< tensors are views of their bucket; else they are copied there and back
    /// The buckets hold first moments; what this optimizer makes of gradients.
    const OptimizerPlan* moments_of = nullptr;
  };
  BaguaBuckets(Replica& replica, const Options& options,
               std::unique_ptr<BucketOperation> operation);

  void prepare(Rank& rank) override;
  Program end(Rank& rank) override;
  void begin(Rank& rank, bool synchronise) override;
  void gradients_ready(Rank& rank, size_t layer, Ticket done) override;
  Program finish(Rank& rank) override;
  Program settle(Rank& rank) override;
  std::vector<Bytes> take_exchanged_bytes() override { return std::exchange(exchanged_bytes_, {}); }

 private:
  struct Bucket {
    std::vector<size_t> parameters;
    std::vector<Slice> parts;  ///< of the flat memory, if there is one
    Slice flat;                ///< with its padding; no_buffer: only while it is exchanged
    int64_t elements = 0;      ///< of it
    std::vector<bool> is_ready;
    Ticket ready;
  };
  struct Member {
    size_t bucket = 0;
    size_t part = 0;
  };

  bool holds_moments() const { return options_.moments_of != nullptr; }
  Slice& tensor_of(size_t parameter) const;
  void flatten(Rank& rank, Bucket& bucket);
  void become_view(Rank& rank, size_t index, const Slice& part);
  void exchange_ready_buckets(Rank& rank);
  void make_moments(Rank& rank, const Bucket& bucket) const;
  Ticket exchange(Rank& rank, const Bucket& bucket);

  Replica* replica_;
  Options options_;
  std::unique_ptr<BucketOperation> operation_;
  std::vector<Bucket> buckets_;
  std::vector<Member> members_;  ///< by parameter
  size_t next_ = 0;              ///< the bucket that goes next
  bool synchronises_ = false;
  Ticket last_exchange_;
  Ticket in_flight_;
  std::vector<Bytes> exchanged_bytes_;
};

}  // namespace lockstep
