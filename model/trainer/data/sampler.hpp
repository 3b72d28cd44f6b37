#pragma once

#include <cstdint>

namespace lockstep {

/// Which samples of a data set one rank uses, in order: a pure function, nothing is listed.
///   distributed  torch.utils.data.DistributedSampler: n = ceil(N / W) for every rank (floor where
///                drop_last and W does not divide N), strided, the first indices again as padding
///   unrepeated   Lightning's UnrepeatedDistributedSampler: range(r, N, W), so n may differ by one
///   whole        no division: every rank uses all N samples (RandomSampler or SequentialSampler)
/// The order of a shuffled epoch is a permutation drawn from Lockstep's counter-based numbers (a
/// four-round Feistel network with cycle walking), not from torch's generator: the same on all
/// ranks, but not the one that torch would draw.
class Sampler {
 public:
  enum class Division : uint8_t { distributed, unrepeated, whole };
  struct Options {
    Division division = Division::distributed;
    int64_t samples = 0;
    int64_t replicas = 1;
    int64_t index = 0;  ///< of this replica
    bool shuffle = false;
    bool drop_last = false;  ///< of the sampler, not of the loader
    uint64_t seed = 0;
    int64_t epoch = 0;  ///< as given to set_epoch
  };

  explicit Sampler(const Options& options);
  /// How many samples this replica uses.
  int64_t size() const { return size_; }
  /// The k-th of them, 0 <= k < size().
  int64_t at(int64_t k) const;
  /// The sampler of another replica.
  Sampler of_replica(int64_t index) const;
  /// Whether replicas take turns: its k-th sample has the position (index + k * replicas) %
  /// samples.
  bool takes_turns() const { return options_.division != Division::whole; }
  const Options& options() const { return options_; }
  /// Its number before shuffling, which is a permutation of all samples.
  int64_t position(int64_t k) const;

 private:
  Options options_;
  int64_t size_ = 0;
  uint64_t key_ = 0;
};

/// Element i of a permutation of 0 .. n - 1 that the key draws; 0 <= i < n.
int64_t permuted(int64_t i, int64_t n, uint64_t key);

}  // namespace lockstep
