#include "model/trainer/data/sampler.hpp"

#include <bit>

#include "model/core/ensure.hpp"
#include "model/core/random.hpp"

namespace lockstep {

int64_t permuted(int64_t i, int64_t n, uint64_t key) {
  ensure(i >= 0 && i < n, "an index of the permutation");
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<uint64_t>(n - 1)));
  const unsigned half = (bits + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  auto at = static_cast<uint64_t>(i);
  do {
    uint64_t left = at >> half;
    uint64_t right = at & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t mixed = left ^ (random_bits(random_key(key, round), right) & mask);
      left = right;
      right = mixed;
    }
    at = left << half | right;
  } while (at >= static_cast<uint64_t>(n));  // outside: walk on, the cycle comes back
  return static_cast<int64_t>(at);
}

Sampler::Sampler(const Options& options) : options_(options) {
  const int64_t n = options.samples;
  const int64_t replicas = options.replicas;
  ensure(n >= 0 && replicas > 0 && options.index >= 0 && options.index < replicas,
         "a replica of the world samples");
  key_ = random_key(options.seed, static_cast<uint64_t>(options.epoch));
  switch (options.division) {
    case Division::whole: size_ = n; break;
    case Division::unrepeated: size_ = (n - options.index + replicas - 1) / replicas; break;
    case Division::distributed:
      size_ = options.drop_last ? n / replicas : (n + replicas - 1) / replicas;
      break;
  }
  size_ = size_ < 0 ? 0 : size_;
}

Sampler Sampler::of_replica(int64_t index) const {
  Options options = options_;
  options.index = options_.division == Division::whole ? options_.index : index;
  return Sampler(options);
}

int64_t Sampler::position(int64_t k) const {
  return options_.division == Division::whole
             ? k
             : (options_.index + k * options_.replicas) % options_.samples;
}

int64_t Sampler::at(int64_t k) const {
  return options_.shuffle ? permuted(position(k), options_.samples, key_) : position(k);
}

}  // namespace lockstep
